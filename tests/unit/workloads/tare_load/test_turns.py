"""tare-load in turns: its command, and its document as the program really wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.workloads.tare_load.cases import TARGET, changed, parameters, parse

from tare.errors import RunFailed
from tare.workloads.tare_load.in_turns import TareLoadInTurns

PING: dict[str, Any] = {"operations": [{"name": "ping", "steps": [{"send": "PING"}]}]}
TURNS: dict[str, Any] = {"job": PING, "seed": 7, "measure_s": 5.0, "window_s": 0.1}
"""Three turns of 10 ms were measured: `measure_s` does not set their length."""


def test_the_schedule_takes_the_place_of_lengths() -> None:
    command = TareLoadInTurns().measure(parameters(), TARGET, "/run/tare")
    assert "--turns=/run/tare/turns.json" in command.argv
    assert not [part for part in command.argv if part.startswith(("--warm-up", "--duration"))]


def test_throughput_is_by_the_measured_time_of_turns(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "turns", **TURNS)
    assert measurement.turns is not None
    assert measurement.turns.operations == (221, 223, 231)
    assert measurement.turns.seconds == pytest.approx(0.03)
    assert measurement.operations == 675
    assert measurement.throughput_per_s == pytest.approx(675 / 0.03)
    assert sum(count for _, count in measurement.histogram) == 675
    assert measurement.turns.settled_s == pytest.approx((0.002, 0.032, 0.062))
    assert measurement.turns.latency_ms[0] == pytest.approx(9.968137 / 221)
    assert measurement.turns.first_half == (109, 112, 116)


def test_a_window_counts_only_the_turns_within(tmp_path: Path) -> None:
    windows = parse(tmp_path, "turns", **TURNS).windows
    assert windows
    assert all(window.throughput_per_s == pytest.approx(675 / 0.03, rel=0.3) for window in windows)


def test_turns_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    wrong = changed("turns", lambda tree: tree["turns"]["right"].__setitem__(2, 1))
    with pytest.raises(RunFailed, match="the turns of tare-load hold 453 operations of 675"):
        parse(tmp_path, "turns", document=wrong, **TURNS)


def test_a_trace_and_a_climb_cannot_take_turns() -> None:
    climb = {"quantile": "p99", "within_ms": 5.0, "from_per_s": 1000.0, "to_per_s": 2000.0, "rungs": 5}
    for given in ({"trace": [0.5, 1.0]}, {"sustainable": climb, "measure_s": 20.0, "window_s": 0.1}):
        assert TareLoadInTurns().refusal(parameters(**given)) is not None
    assert TareLoadInTurns().refusal(parameters(rate=100.0)) is None
