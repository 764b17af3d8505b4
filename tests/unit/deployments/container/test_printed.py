"""Of a container that prints for ever, a bounded part is read. Found by attack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tare.deployments.container import printed as module
from tare.deployments.container.printed import printed


class Log:
    """The log of a container: an engine gives it in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.closed = pieces, False

    def logs(self, *, stdout: bool, stderr: bool, stream: bool, follow: bool) -> Log:
        assert (stdout, stderr, stream, follow) == (True, False, True, False)
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self.pieces

    def close(self) -> None:
        self.closed = True


def test_an_output_is_read_whole() -> None:
    log = Log(iter([b"one\n", b"two\n"]))
    assert printed(cast("Any", log), stdout=True) == b"one\ntwo\n"
    assert not log.closed


def test_one_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    log = Log(iter(lambda: b"abc", b""))
    assert printed(cast("Any", log), stdout=True).startswith(b"abcabcabca\n[tare: ")
    assert log.closed
