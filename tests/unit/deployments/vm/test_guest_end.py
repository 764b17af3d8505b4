"""What a virtual machine tells of its task's end."""

from __future__ import annotations

import pytest

from tare.deployments.vm.guest import DiskSpace, GuestEnd, guest_end
from tare.sites.fake import FakeHost


def parsed(raw: bytes) -> GuestEnd | None:
    return guest_end(FakeHost(files={"/run/t/status": raw}), "/run/t/status")


def test_code_kills_and_rooms_are_read() -> None:
    raw = b'{"code":-6,"oom_kills":2,"rooms":{"/data":{"bytes":400,"free_bytes":0}}}\n'
    assert parsed(raw) == GuestEnd(-6, 2, {"/data": DiskSpace(0, 400)})


def test_what_the_machine_could_not_read_is_left_out() -> None:
    assert parsed(b'{"code":0,"oom_kills":null}\n') == GuestEnd(0, None, {})


@pytest.mark.parametrize("raw", [b"", b'{"code": 1, "oom_'])
def test_nothing_is_known_before_it_is_told_whole(raw: bytes) -> None:
    assert parsed(raw) is None


def test_nothing_is_known_where_there_is_no_file() -> None:
    assert guest_end(FakeHost(), "/run/t/status") is None
