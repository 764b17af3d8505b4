"""`tools/chaos` on agents: what strikes a pair of hosts, what may be left on them, and programs over a link."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.sites.ssh.dialing import agent_program
from tare.sites.ssh.link import LEASE_S
from tools.chaos.ground import Here
from tools.chaos.link import Outcome, play_link
from tools.chaos.pair import PairChaos, faults_of, is_daemon, noted
from tools.chaos.processes import text, with_word
from tools.chaos.reasons import wrong
from tools.chaos.session import Played, Session
from tools.chaos.tally import Tally


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


def pair(**more: Any) -> PairChaos:
    return PairChaos(["true"], Path(), Random(1), 1.0, **more)


def test_what_a_killed_tare_left_may_stay_until_its_agents_lease_is_over() -> None:
    at_once = pair(killed_at=1000.0 - 2 * LEASE_S).patience_s(1000.0)
    assert pair(killed_at=990.0).patience_s(1000.0) == at_once + LEASE_S - 10.0
    trial = pair(killed_at=900.0)
    trial._restore(
        [Played("kill -9 an agent", "load", 999.0, 1000.0), Played("kill -9 tare", "load", 989.0, 990.0)]
    )
    assert trial.killed_at == 990.0


def test_a_failed_attempt_needs_a_killed_agent_and_no_cut_explains_it() -> None:
    lost = "the agent on a ended during a request and was restarted"
    assert wrong(lost, 100.0, 102.0, [Played("kill -9 an agent", "load", 101.0, 101.1)]) is None
    for kind in ("connections ended", "network silent"):
        assert "does not name" in str(wrong(lost, 100.0, 102.0, [Played(kind, "load", 101.0, 101.1)]))
    assert wrong(lost, 100.0, 102.0, [Played("kill -9 an agent", "load", 60.0, 60.1)]) == "no fault came into it"


def test_a_fault_that_finds_nothing_to_strike_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    there = list[int]()
    monkeypatch.setattr("tools.chaos.pair.agents", lambda _: there)
    monkeypatch.setattr("tools.chaos.pair.connections", lambda _: there)
    faults = faults_of([cast("Any", SimpleNamespace(name="a"))])
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        session = Session(sleeper, ["true"], Here(Path()), Random(1))
        assert not any(session.play(kind, faults[kind]) for kind in set(faults) - {"kill -9 tare"})
        there.append(sleeper.pid)
        assert session.play("kill -9 an agent", faults["kill -9 an agent"])
        assert [played.kind for played in session.played] == ["kill -9 an agent"]
        assert sleeper.wait(10.0) == -signal.SIGKILL


def test_lost_doubled_and_unexplained_programs_are_violations() -> None:
    lost = "the agent on far ended during a request and was restarted"
    outcome = Outcome(5, Counter({0: 1, 1: 2}), {3: lost, 4: "far cannot be reached"}, living=1)
    assert outcome.faults(may_fail=True) == [
        "program 1 ran 2 times",
        "program 2 is said to have run, and did not",
        "program 4 failed: far cannot be reached",
        "1 agents are left",
    ]
    assert f"program 3 failed: {lost}" in outcome.faults(may_fail=False)


def test_cuts_lose_nothing_and_kills_fail_with_their_reason() -> None:
    tally = Tally()
    play_link(12, Random(1), tally)
    assert tally.violations == []
    assert tally.kinds == {"connection cut": 6, "kill -9 an agent": 6}
