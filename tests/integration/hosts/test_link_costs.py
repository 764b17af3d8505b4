"""The links of `tare weigh` on this machine: measured, or left out with the reason, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tare.knowledge.link_costs import PROGRAM, link_costs
from tare.knowledge.unit_costs import LINKS
from tare.sites.binaries import LOAD, find
from tare.sites.local import LocalHost

pytestmark = pytest.mark.root
SUBNET = "10.231.255.224/27"


def links_of(pid: int | None = None) -> list[str]:
    """Links of the program in the machine's own namespace; of every process without a pid."""
    listed = LocalHost().run(["ip", "-oneline", "link", "show"], timeout_s=60.0).text.splitlines()
    return [line for line in listed if f": tarel{pid or ''}" in line]


def test_links_are_measured_or_left_out_with_a_reason_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.knowledge.link_costs.REPEATS", 2)
    weighed, packets, lacks = link_costs(LocalHost())
    measured = {each.network for each in weighed}
    for link in LINKS:
        assert link in measured or any(why.startswith(link) for why in lacks)
    assert {"loopback", "wire"} <= {each.link for each in packets}
    assert all(200 < each.ns < 1_000_000 for each in packets)
    assert links_of() == []


def test_a_killed_program_leaves_no_link() -> None:
    load = find(LocalHost(), LOAD)
    assert load is not None
    argv = [sys.executable, "-I", "-S", str(PROGRAM), "100", "60", load, SUBNET]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        until = time.monotonic() + 60.0
        while len(links_of(program.pid)) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text(encoding="utf-8").split()
        assert len(links_of(program.pid)) >= 4
        os.kill(program.pid, signal.SIGKILL)
    until = time.monotonic() + 60.0
    while (links_of(program.pid) or any(Path(f"/proc/{pid}").exists() for pid in children)) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    assert links_of(program.pid) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
