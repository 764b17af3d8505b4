"""The program that measures network links, without links: what a failure, a timeout and a dead parent do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import closing
from typing import Any

import pytest

from tare.calibrate import link_costs


@pytest.mark.parametrize(
    "failure", [subprocess.TimeoutExpired("tare-load", 20.0), OSError("no process"), link_costs.PathError("none")]
)
def test_a_path_that_fails_in_any_way_is_left_out_alone(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(_stack: Any, _program: str, path: link_costs.NetworkPath) -> int:
        if path.name == "broken":
            raise failure
        return 1

    def paths(_subnet: Any) -> list[Any]:
        return [
            (name, lambda _, name=name: link_costs.NetworkPath(name, None, None, "127.0.0.1"))
            for name in ("broken", "loopback")
        ]

    monkeypatch.setattr(link_costs, "_paths", paths)
    monkeypatch.setattr(link_costs, "_serve", serve)
    monkeypatch.setattr(link_costs, "_asked", lambda *_: {"server": 1.0, "client": 1.0, "time": 1.0})
    monkeypatch.setattr(link_costs, "_packet", lambda _: (1.0, 1.0))
    link_costs.main(1, 0.0, "tare-load", "10.231.255.224/27")
    tree = json.loads(capsys.readouterr().out)
    assert list(tree["requests"]) == ["loopback"]
    assert tree["lacks"] == [f"broken: {failure}"]


def test_a_datagram_that_does_not_come_ends_the_wait_without_a_poll_before_each() -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as receiver:
        receiver.bind(("127.0.0.1", 0))
        link_costs.limit_receiving(receiver, 0.05)
        assert receiver.gettimeout() is None  # CPython polls where it keeps the limit itself
        began = time.monotonic()
        with pytest.raises(BlockingIOError):
            receiver.recv(100)
        assert time.monotonic() - began > 0.04


def test_a_child_whose_parent_has_ended_before_it_asked_ends_at_once() -> None:
    for parent, ends in ((os.getpid(), 0), (os.getpid() + 1, 1)):
        pid = os.fork()
        if pid == 0:
            try:
                link_costs.die_with_parent(parent)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == ends
