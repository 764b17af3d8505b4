"""Links of tare's own are taken away, also while the kernel is at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tare.deployments.vm import network as vm_network
from tare.deployments.vm.network import remove_link
from tare.errors import RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost

LINK = "tarn012345678"
DELETE = ("ip", "link", "delete", "dev", LINK)
LACKING = Completed((), 1, b"", b"Cannot find device")


class Vanishing(FakeHost):
    """A host on which the file of a link reads as each of `readings` in turn."""

    readings: Iterator[bytes | RunFailed | None]

    def read(self, path: str) -> bytes | None:
        if not path.startswith("/sys/class/net/"):
            return super().read(path)
        now = next(self.readings)
        if isinstance(now, RunFailed):
            raise now
        return now


def vanishing(*links: bytes | RunFailed | None, answer: Completed) -> Vanishing:
    host = Vanishing(answers={DELETE: answer})
    host.readings = iter(links)
    return host


def test_a_link_that_is_there_is_deleted_once() -> None:
    host = vanishing(b"7\n", answer=Completed((), 0))
    assert remove_link(host, LINK)


def test_no_link_is_no_error() -> None:
    assert not remove_link(vanishing(None, answer=LACKING), LINK)


def test_a_link_whose_namespace_has_just_ended_may_be_half_gone() -> None:
    unreadable = RunFailed("/sys/class/net/x/ifindex cannot be read on fake: Invalid argument")
    assert remove_link(vanishing(b"7\n", unreadable, None, answer=LACKING), LINK)


def test_a_link_that_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_network, "_GONE_S", 0.0)
    with pytest.raises(RunFailed):
        remove_link(vanishing(b"7\n", b"7\n", answer=LACKING), LINK)
