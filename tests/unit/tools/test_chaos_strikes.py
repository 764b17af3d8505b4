"""`tools/chaos`: a fault is counted where it struck, and what no fault may do is a violation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tools.chaos.canaries import _name
from tools.chaos.faults import another_home, calls_fail, exhaust, second_tare
from tools.chaos.ground import Here
from tools.chaos.processes import ended
from tools.chaos.reasons import survived, unforeseen
from tools.chaos.session import Played, Session, inner_pid
from tools.chaos.tally import Tally
from tools.chaos.trial import Chaos, unlike_an_end

SLEEP = ("sleep", "300.25")


@contextmanager
def session(place: Path, words: Sequence[str] = SLEEP, again: Sequence[str] = ("true",)) -> Iterator[Session]:
    """Of a program in place of tare; `again`: what a second one is."""
    ground = Here(place, env={**os.environ, "TARE_HOME": f"{place}/home"})
    with subprocess.Popen(words) as tare:
        try:
            yield Session(tare, again, ground, Random(1), place / "store")
        finally:
            tare.kill()


def until_ended(pid: int) -> None:
    deadline = time.monotonic() + 60.0
    while not ended(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended(pid)


def test_one_that_has_ended_and_was_not_waited_for_is_not_struck(tmp_path: Path) -> None:
    with session(tmp_path, ("true",)) as over, session(tmp_path) as there:
        until_ended(over.pid)
        os.kill(over.pid, 0)  # the kernel would still take a signal
        assert not over.signal([over.pid], cast("Any", 9))
        assert there.signal([over.pid, there.pid], cast("Any", 9))


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("strace") is None, reason="root and strace attach to any process"
)
def test_calls_that_nobody_made_did_not_fail(tmp_path: Path) -> None:
    fault = calls_fail("tare", "fsync", "EIO")
    syncs = "import os, time\nwhile True:\n try: os.fsync(1)\n except OSError: pass\n time.sleep(0.01)"
    for words, struck in ((SLEEP, False), ((sys.executable, "-c", syncs), True)):
        with session(tmp_path, words) as one:
            one.store.mkdir(exist_ok=True)
            (one.store / "now.json").write_text(json.dumps({"pid": inner_pid(one.pid), "runs": []}))
            assert fault(one) is struck


def test_a_memory_group_in_which_the_kernel_killed_nobody_was_not_struck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.chaos.faults._HOG", "")
    for name, number in (("memory.usage_in_bytes", 4096), ("memory.limit_in_bytes", 1 << 62), ("cgroup.procs", 0)):
        (tmp_path / name).write_text(f"{number}\n")
    assert not exhaust(tmp_path)
    assert (tmp_path / "memory.limit_in_bytes").read_text() == "-1"
    counts = iter((3, 4))
    monkeypatch.setattr("tools.chaos.faults.oom_kills", lambda _: next(counts))
    assert exhaust(tmp_path)


def test_the_shim_of_a_canary_is_no_part_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.chaos.session.part_of", lambda _: "a shim")
    with subprocess.Popen(["sleep", "300.5"]) as canarys, session(tmp_path) as one:
        monkeypatch.setattr(Here, "processes", lambda _: [canarys.pid, one.pid])
        assert canarys.pid in one.part("a shim")
        cast("Here", one.ground).spared = "300.5"
        assert one.pid in one.part("a shim")
        assert canarys.pid not in one.part("a shim")
        canarys.kill()


@pytest.mark.parametrize(
    ("code", "kinds", "why"),
    [
        (0, set(), None),
        (None, {"kill -9 tare"}, None),
        (-9, {"kill -9 tare", "bridge down"}, None),
        (137, {"out of memory: tare"}, None),
        (143, {"SIGTERM of tare"}, None),
        (143, {"bridge down"}, "was ended by SIGTERM, and by no fault"),
        (-9, {"bridge down"}, "was killed, and by no fault"),
        (-6, {"no more processes"}, "was ended by SIGABRT"),
        (-11, {"kill -9 tare"}, "was ended by SIGSEGV"),
        (4, set(), "ended with 4"),
    ],
)
def test_a_crash_of_tare_is_told_from_an_end_that_a_fault_explains(
    code: int | None, kinds: set[str], why: str | None
) -> None:
    assert unlike_an_end(code, kinds) == why


@pytest.mark.parametrize(
    ("code", "alive", "let_in"), [(0, True, True), (1, True, True), (2, True, False), (0, False, False)]
)
def test_a_second_tare_that_has_the_store_of_one_at_work_is_a_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, alive: bool, let_in: bool
) -> None:
    monkeypatch.setattr("tools.chaos.faults._OVER_S", 0.5)
    with session(tmp_path, SLEEP if alive else ("true",), ("sh", "-c", f"exit {code}")) as one:
        if let_in:
            with pytest.raises(AssertionError, match=f"was let in, and ended with {code}"):
                second_tare(one)
        else:
            assert second_tare(one)


@pytest.mark.parametrize("leaves", [True, False])
def test_what_a_tare_of_another_home_leaves_in_its_ledger_is_a_violation(tmp_path: Path, *, leaves: bool) -> None:
    note = (
        "from tare.sites.layout import default_layout\nfrom tare.sites.ledger import Kind\n"
        "from tare.sites.sqlite_ledger import SqliteLedger\n"
        f"SqliteLedger(default_layout().ledger).note(Kind.PATH, '/nowhere/left', keep={not leaves})"
    )
    with session(tmp_path, again=(sys.executable, "-c", note, "--store", "x")) as one:
        if leaves:
            with pytest.raises(AssertionError, match="left in its ledger: path /nowhere/left"):
                another_home(one)
        else:
            assert another_home(one)


def record(phases: Mapping[str, tuple[float, float]]) -> Any:
    times = [SimpleNamespace(phase=name, began_at=at, seconds=s) for name, (at, s) in phases.items()]
    return cast("Any", SimpleNamespace(phases=times))


@pytest.mark.parametrize(
    ("kind", "at", "until", "found"),
    [
        ("kill -9 client", 101.0, 101.2, True),
        ("kill -9 server", 101.0, 101.2, True),
        ("kill -9 tare-probe", 101.0, 101.2, True),
        ("kill -9 QEMU", 101.0, 101.2, True),
        ("SIGSTOP of client", 101.0, 101.2, False),
        ("kill -9 docker-proxy", 101.0, 101.2, False),
        ("kill -9 client", 99.9, 100.1, False),
        ("kill -9 client", 104.0, 104.2, False),
    ],
)
def test_a_run_is_not_good_whose_part_was_killed_while_it_measured(
    kind: str, at: float, until: float, *, found: bool
) -> None:
    good = record({"load": (90.0, 10.0), "measure": (100.0, 5.0)})
    fault = Played(kind, "measure", at, until)
    assert survived(good, [fault]) == (kind if found else None)
    assert survived(good, [fault, Played("clock of tare's stepped by 1 h", "load", at, until)]) is None


def test_a_reason_on_fakes_is_held_to_be_foreseen_and_one_line() -> None:
    assert unforeseen("the client was ended by SIGKILL") is None
    for reason in (None, "", "one\ntwo", "Traceback (most recent call last)", "AttributeError: 'NoneType'"):
        assert unforeseen(reason) is not None


def test_kinds_that_never_found_anything_are_named() -> None:
    one = Tally(Counter({("bridge down", "load"): 1}), missed=Counter({"bridge down": 2, "kill -9 QEMU": 3}))
    whole = Tally.of(json.loads(json.dumps(one.tree())))
    assert whole.missed == one.missed
    assert one.tree()["never_struck"] == ["kill -9 QEMU"]
    whole.add(Tally(Counter({("kill -9 QEMU", "measure"): 1})))
    assert whole.never_struck == []
    assert "Found nothing to strike: kill -9 QEMU." in one.table()


def test_a_sleeper_that_is_no_canary_is_seen() -> None:
    for words, name in ((["sleep", "100000"], ""), (["sleep", "3600"], ""), (["sleep", "300.75"], "sleep")):
        with subprocess.Popen(words) as sleeper:
            deadline = time.monotonic() + 60.0
            while _name(sleeper.pid) != name and time.monotonic() < deadline:
                time.sleep(0.01)  # it is still the fork of this process
            assert _name(sleeper.pid) == name
            sleeper.kill()


@dataclass
class Awaited:
    """A session in which a machine is there at the third look, and which ends after one fault."""

    looks: int = 0
    played_at: list[int] = field(default_factory=list)
    tare: Any = None
    chance: Any = None

    def __post_init__(self) -> None:
        self.tare = SimpleNamespace(poll=lambda: None, wait=self.wait)

    def wait(self, timeout: float) -> int:
        if not self.played_at:
            raise subprocess.TimeoutExpired("tare", timeout)
        return 0

    def there(self, session: object) -> bool:
        assert session is self
        self.looks += 1
        return self.looks >= 3

    def play(self, _kind: str, _fault: object) -> bool:
        self.played_at.append(self.looks)
        return True


def test_faults_of_most_sessions_wait_for_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.chaos.trial._LOOK_S", 0.0)
    for waits, looks in ((True, 3), (False, 0)):
        rng = cast("Any", SimpleNamespace(random=lambda: 0.5, uniform=lambda *_: 0.0))
        one = Awaited()
        there = cast("Any", one.there if waits else None)
        trial = Chaos([], tmp_path, rng, 1.0, faults={"bridge down": cast("Any", None)}, there=there)
        assert trial._faults(cast("Any", one), 3) == 0
        assert one.played_at == [looks]
