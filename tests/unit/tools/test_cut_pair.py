"""`tools/cut_pair.py`: what it calls a fault, and where it says that faults came."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.sites.ssh.dialing import agent_program
from tare.sites.ssh.link import LEASE_S
from tools.chaos.processes import text, with_word
from tools.cut_pair import Fault, Faults, is_daemon, noted, patience_s, phases_hit, unexplained, unnamed


def record(*, reason: str | None = None, began_at: float = 100.0) -> Any:
    phases = [SimpleNamespace(phase="load", began_at=began_at, seconds=2.0)]
    outcome = SimpleNamespace(ok=reason is None, reason=reason)
    return cast("Any", SimpleNamespace(run_id="run-1", attempt=1, phases=phases, outcome=outcome))


def test_a_fault_is_put_into_the_phase_that_was_under_way() -> None:
    faults = [Fault("agent", "a", at, at) for at in (99.9, 100.0, 101.9, 102.0)]
    assert phases_hit(faults, [record()]) == {"load": 2, "between attempts, or in one that a kill of tare took": 2}


def test_a_failed_attempt_needs_one_sentence() -> None:
    assert unnamed([record(reason="the agent on a ended"), record()]) == []
    assert len(unnamed([record(reason=""), record(reason="a\nb"), record(reason="Traceback (most recent")])) == 3


def test_what_was_forgotten_or_is_kept_is_not_left(tmp_path: Path) -> None:
    lines = [
        {"kind": "path", "ident": "/a", "owner": "1", "keep": False},
        {"kind": "path", "ident": "/b", "owner": "1", "keep": True},
        {"kind": "path", "ident": "/c", "owner": "1", "keep": False},
        {"kind": "path", "forgotten": "/a"},
    ]
    ledger = tmp_path / "ledger"
    ledger.write_text("".join(f"\n{json.dumps(line)}\n" for line in lines))
    assert list(noted(ledger)) == ["path /c"]
    assert list(noted(tmp_path / "none")) == []


def test_the_daemon_of_an_agent_is_told_from_what_carries_its_frames(tmp_path: Path) -> None:
    words = [str(agent_program()), "connect", "--session", "test", "--home", str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as carrier:
        try:
            assert carrier.stdout is not None
            carrier.stdout.read(1)
            lines = {pid: text(f"/proc/{pid}/cmdline").replace("\0", " ") for pid in with_word(bytes(tmp_path))}
            (daemon,) = [pid for pid, line in lines.items() if is_daemon(line)]
            assert daemon != carrier.pid
            os.kill(daemon, signal.SIGKILL)
            carrier.wait(10.0)  # its daemon is gone
        finally:
            carrier.kill()


def test_what_a_killed_tare_left_may_stay_until_its_agents_lease_is_over() -> None:
    def fault(kind: str, at: float) -> Fault:
        return Fault(kind, "a", at, at)

    at_once = patience_s([fault("agent", 1000.0)], 1000.0)
    assert patience_s([fault("tare", 990.0), fault("agent", 1000.0)], 1000.0) == at_once + LEASE_S - 10.0
    assert patience_s([fault("tare", 1000.0 - 2 * LEASE_S)], 1000.0) == at_once


def test_a_failed_attempt_needs_a_killed_agent_and_no_cut_explains_it() -> None:
    failed = [record(reason="it went away", began_at=100.0)]
    assert unexplained(failed, [Fault("agent", "a", 95.0, 95.1)]) == []
    assert unexplained([record()], []) == []
    for fault in (
        Fault("silence", "a", 100.5, 101.0),
        Fault("agent", "a", 60.0, 60.1),
        Fault("agent", "a", 103.0, 103.1),
    ):
        (problem,) = unexplained(failed, [fault])
        assert "no agent was killed in it: it went away" in problem


def test_a_fault_that_finds_nothing_to_strike_is_not_counted_and_stays_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = list[int]()
    monkeypatch.setattr("tools.cut_pair.agents", lambda _: there)
    monkeypatch.setattr("tools.cut_pair.connections", lambda _: there)
    host = cast("Any", SimpleNamespace(name="a"))
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        faults = Faults([host], Random(1), ["silence", "connections", "agent"])
        assert not faults.play(sleeper)
        assert (faults.played, faults.missed, len(faults.to_come)) == ([], 1, 3)
        there.append(sleeper.pid)
        assert faults.play(sleeper)
        assert [fault.kind for fault in faults.played] == ["agent"]
        assert sleeper.wait(10.0) == -signal.SIGKILL
        there.clear()
        assert not faults.play(sleeper)
        faults.to_come.pop()
        assert not faults.play(sleeper), "nobody has a connection that could be silent"
