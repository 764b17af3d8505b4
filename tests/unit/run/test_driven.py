"""When the generator drove is told by its own word where that can be true, else by the end of the phase."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tare.run.driven import driving, with_driven
from tare.run.record import Phase, PhaseTime
from tare.run.trimming import Span

WALL_S, MONOTONIC_S = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp(), 5000.0
MEASURE = PhaseTime(phase=Phase.MEASURE, began_at=WALL_S, seconds=31.0, monotonic_s=MONOTONIC_S)
USAGE = {"began_monotonic_s": MONOTONIC_S + 0.5, "ended_monotonic_s": MONOTONIC_S + 30.5}


def driven(**told: Any) -> Any:
    return (with_driven(USAGE, {"duration_s": 20.0, **told}, (MEASURE,)) or {}).get("driven")


def at(seconds: float) -> float:
    return MONOTONIC_S + seconds


def test_the_generator_s_own_moment_is_laid_on_the_trace_s_clock() -> None:
    found = driven(started_at=WALL_S + 8.0)
    assert found == {"began_monotonic_s": at(8.0), "ended_monotonic_s": at(28.0), "by": "generator"}


@pytest.mark.parametrize("zone_h", [-9.5, 0, 1, 5.75, 13])
def test_its_time_zone_does_not_matter(zone_h: float) -> None:
    found = driven(started_at=WALL_S + 8.0 + 3600 * zone_h)
    assert (found["began_monotonic_s"], found["by"]) == (pytest.approx(at(8.0)), "generator")


@pytest.mark.parametrize("started_at", [None, WALL_S - 5.0, WALL_S + 60.0], ids=["none", "too early", "too late"])
def test_without_a_moment_that_can_be_true_its_seconds_lie_before_the_phase_s_end(started_at: float | None) -> None:
    told = {} if started_at is None else {"started_at": started_at}
    assert driven(**told) == {"began_monotonic_s": at(10.5), "ended_monotonic_s": at(30.5), "by": "end"}


def test_it_does_not_drive_after_the_phase() -> None:
    assert driven(started_at=WALL_S + 15.0)["ended_monotonic_s"] == at(30.5)


def test_nothing_is_told_of_what_did_not_measure_and_of_older_records() -> None:
    assert with_driven(USAGE, None, (MEASURE,)) == USAGE
    assert with_driven(USAGE, {"duration_s": None}, (MEASURE,)) == USAGE
    assert with_driven(None, {"duration_s": 20.0}, (MEASURE,)) is None
    assert driving({"driven": driven()}) == Span(at(10.5), at(30.5))
    assert driving(USAGE) is driving(None) is driving({"driven": None}) is None
