"""`tools/chaos`: what must be said of a failed attempt, how counts add up, and what is left or touched."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tools.chaos.canaries import differences
from tools.chaos.faults import FAULTS
from tools.chaos.processes import below, part_of
from tools.chaos.real_faults import REAL
from tools.chaos.reasons import REASONS, wrong
from tools.chaos.session import Played, inner_pid
from tools.chaos.tally import Tally, merged

HARMLESS = {"kill -9 tare", "SIGTERM of tare", "a second tare", "another home's tare", "another user's tare"}
"""After these no attempt may be kept as failed."""


def played(kind: str, at: float = 100.0, until: float = 101.0) -> Played:
    return Played(kind, "measure", at, until)


def test_each_fault_has_words_for_what_it_does_or_may_fail_nothing() -> None:
    assert set(REASONS) == {*FAULTS, *REAL} - HARMLESS


@pytest.mark.parametrize(
    ("reason", "kind", "why"),
    [
        ("the server was ended by SIGKILL during measure; its last output: x", "kill -9 server", None),
        ("bare, which ran at the same time, failed: the server was ended by SIGKILL", "kill -9 server", None),
        ("tare-load printed nothing", "kill -9 client", "does not name kill -9 client first"),
        (f"it went wrong {'x' * 300} SIGKILL", "kill -9 server", "does not name"),
        ("the server was ended by SIGKILL", "a second tare", "does not name"),
        ("RuntimeError: can't start new thread", "no more processes", "nobody has foreseen"),
        ("", "kill -9 server", "no reason"),
        ("one\ntwo", "kill -9 server", "no reason"),
    ],
)
def test_a_reason_must_name_the_fault_first(reason: str, kind: str, why: str | None) -> None:
    complaint = wrong(reason, 90.0, 105.0, [played(kind)])
    assert complaint is None if why is None else why in (complaint or "")


def test_a_fault_explains_only_attempts_that_it_came_into() -> None:
    reason = "the server was ended by SIGKILL"
    assert wrong(reason, 200.0, 205.0, [played("kill -9 server")]) == "no fault came into it"
    assert wrong(reason, 90.0, 95.0, [played("kill -9 server")]) == "no fault came into it"
    assert wrong(reason, 110.0, 115.0, [played("kill -9 server")]) is None
    assert wrong(reason, 0.0, 1.0, [played("kill -9 server"), played("clock of tare's stepped by 1 h")]) is None


def test_counts_of_several_calls_add_up(tmp_path: Path) -> None:
    one = Tally(Counter({("kill -9 tare", "measure"): 2, ("bridge down", "between runs"): 1}), seeds=["redis 1"])
    other = Tally(
        Counter({("kill -9 tare", "load"): 3}), violations=["lost"], seeds=["redis 2"], attempts=4, stores=1
    )
    for number, tally in enumerate((one, other)):
        (tmp_path / f"{number}").write_text(_json(tally))
    whole = merged([tmp_path / "0", tmp_path / "1"])
    assert (whole.faults, whole.kinds["kill -9 tare"], whole.seeds) == (6, 5, ["redis 1", "redis 2"])
    assert whole.table().splitlines() == [
        "| fault | load | measure | between | all |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| bridge down |  |  | 1 | 1 |",
        "| kill -9 tare | 3 | 2 |  | 5 |",
        "| all | 3 | 2 | 1 | 6 |",
        "",
        "6 faults, 1 violations, 4 attempts kept in 1 stores, 0 s.",
    ]


def _json(tally: Tally) -> str:

    return json.dumps(tally.tree())


def test_what_came_or_went_is_told() -> None:
    before = {"mount": Counter({"/a": 1, "/b": 1})}
    assert differences(before, {"mount": Counter({"/a": 1, "/b": 1})}) == []
    assert differences(before, {"mount": Counter({"/a": 2})}) == ["mount left: /a", "mount gone: /b"]


def test_a_process_that_is_no_part_has_no_name() -> None:
    assert part_of(os.getpid()) is None
    assert inner_pid(os.getpid()) == os.getpid()
    assert os.getpid() in below(os.getppid())
