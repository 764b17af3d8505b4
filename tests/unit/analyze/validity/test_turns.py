"""What the rule `carry-over` finds in arms that take turns, and that it stays silent on a clean study."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import measured

from tare.analyze.runs import select_runs
from tare.analyze.validity import Alarm, check
from tare.protocols.rotate import rounds
from tare.record.measurement import TurnCounts
from tare.record.run_record import RunRecord
from tare.record.turns import Rotation
from tare.record.usage import Usage
from tare.study.model import Study
from tare.study.protocol_spec import RotateSpec

ARMS = ("bare", "host", "bridge")
ROUNDS, TURN_S, SETTLE_S = 60, 0.1, 0.02
Scale = Callable[[str, str, int], float]
"""Arm, arm before, half of the turn → what its rate is multiplied by."""


def study() -> Study:
    return synthetic.study(ARMS).model_copy(update={"protocol": RotateSpec(name="rotate")})


def generations(scale: Scale, count: int = 8, late_s: float = 0.0) -> list[RunRecord]:
    """Records of generations; the last reply to `host` comes `late_s` after the end of each of its turns."""
    rng, records = np.random.default_rng(8), list[RunRecord]()
    for block in range(1, count + 1):
        order = [arm for each in rounds(ARMS, ROUNDS, rng) for arm in each]
        for position, name in enumerate(ARMS):
            numbers = [number for number, arm in enumerate(order) if arm == name]
            level = 2000 * math.exp(rng.normal(0, 0.015))
            halves = [
                [
                    round(level * scale(name, order[n - 1] if n else "", half) * TURN_S / 2 * rng.normal(1, 0.02))
                    for n in numbers
                ]
                for half in (0, 1)
            ]
            starts = [(n - numbers[0]) * (TURN_S + SETTLE_S) for n in numbers]
            ends = [start + TURN_S + SETTLE_S for start in starts]
            turns = TurnCounts(
                settled_s=tuple(start + SETTLE_S for start in starts),
                ends_s=tuple(ends),
                operations=tuple(sum(both) for both in zip(*halves, strict=True)),
                first_half=tuple(halves[0]),
                latency_ms=(1.0,) * ROUNDS,
                last_s=tuple(end + (late_s if name == "host" else 0.001) for end in ends),
            )
            made = synthetic.record(block, name, sum(turns.operations) / ROUNDS / TURN_S, position=position)
            rotation = Rotation(arms=3, turn_ms=100.0, settle_ms=20.0, warm_up_rounds=1, numbers=tuple(numbers))
            measurement = replace(measured(made), turns=turns)
            records.append(made.model_copy(update={"rotation": rotation, "measurement": measurement}))
    return records


def carried(records: list[RunRecord]) -> list[Alarm]:
    alarms = check(study(), select_runs(study(), records))
    return [alarm for alarm in alarms if alarm.rule == "carry-over"]


def test_a_clean_study_raises_no_alarm() -> None:
    assert carried(generations(lambda arm, before, half: {"bridge": 0.9}.get(arm, 1.0))) == []


def test_a_slow_start_of_one_arms_turns_is_found() -> None:
    (alarm,) = carried(generations(lambda arm, before, half: 0.9 if (arm, half) == ("host", 0) else 1.0))
    assert alarm.arm == "host"
    assert "the second half of its turns was 11." in alarm.what
    assert "faster" in alarm.what
    assert len(alarm.runs) == 8


def test_an_arm_that_slows_the_next_one_is_found_and_named() -> None:
    (alarm,) = carried(generations(lambda arm, before, half: 0.9 if (arm, before) == ("bare", "bridge") else 1.0))
    assert alarm.arm == "bare"
    assert "its turns after bridge were" in alarm.what
    assert "slower than after others" in alarm.what


@pytest.mark.parametrize(("late_s", "alarms"), [(0.019, 0), (0.021, 3)])
def test_replies_that_come_after_the_next_arm_counts_are_found(late_s: float, alarms: int) -> None:
    """Whoever follows `host` is concerned: each arm, itself too where a round ends with it and the next begins."""
    assert len(carried(generations(lambda arm, before, half: 1.0, late_s=late_s))) == alarms


@pytest.mark.parametrize(("change", "alarms"), [(0.98, 0), (0.95, 1)])
def test_changes_within_the_target_width_are_no_alarm(change: float, alarms: int) -> None:
    assert (
        len(carried(generations(lambda arm, before, half: change if (arm, half) == ("host", 0) else 1.0))) == alarms
    )


def test_three_generations_say_nothing() -> None:
    assert carried(generations(lambda arm, before, half: 0.8 if half == 0 else 1.0, count=3)) == []


@pytest.mark.parametrize(("cpus", "arms"), [(0.019, []), (0.03, ["host"])])
def test_a_server_that_works_in_the_turns_of_others_is_named(cpus: float, arms: list[str]) -> None:
    records = [
        each.model_copy(
            update={"usage": replace(each.usage or Usage(), idle_cpus=cpus if each.arm == "host" else 0.001)}
        )
        for each in generations(lambda arm, before, half: 1.0)
    ]
    alarms = [alarm for alarm in check(study(), select_runs(study(), records)) if alarm.rule == "awake"]
    assert [alarm.arm for alarm in alarms] == arms
    assert all(f"{cpus:.2f} CPUs" in alarm.what for alarm in alarms)
