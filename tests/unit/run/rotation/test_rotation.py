"""Arms that take turns, on fakes: one at a time, counted in their turns only, all good or none."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tare.analyze.statistics.turns import generations_of
from tare.plan.model import Plan
from tare.record.run_record import Phase, RunRecord
from tare.run.resume import StudyState
from tare.study.protocol_spec import RotateSpec

pytestmark = pytest.mark.timed
TURN_MS, SETTLE_MS, ROUNDS = 40.0, 20.0, 12


@pytest.fixture
def rotation(plans: Any) -> Any:
    """Makes a plan of a baseline, another arm and the control, in one generation of 12 rounds."""

    def make(*arms: str, **workload: Any) -> Plan:
        spec = RotateSpec(
            name="rotate",
            blocks=workload.pop("generations", 1),
            retries=workload.pop("retries", 0),
            turn_ms=TURN_MS,
            settle_ms=SETTLE_MS,
            rounds=ROUNDS,
        )
        plan: Plan = plans(arms=("plain", *arms), protocol=spec, **workload)
        return plan

    return make


def test_a_generation_has_every_arm_and_all_are_good(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other"))
    assert [record.outcome for record in records if not record.outcome.ok] == []
    assert sorted(record.arm for record in records) == ["baseline-again", "other", "plain"]
    for record in records:
        turns = record.measurement.turns
        assert len(turns.operations) == ROUNDS
        assert sum(turns.operations) == record.measurement.operations > 0
        seconds = ROUNDS * TURN_MS / 1000
        assert record.measurement.throughput_per_s == pytest.approx(record.measurement.operations / seconds)
    assert rig.leftovers == [], [record.notices for record in records]


def test_each_turn_belongs_to_one_arm_and_each_round_to_all(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other", warmup_s=0.1))
    numbers = {record.arm: record.rotation.numbers for record in records}
    warm_up = records[0].rotation.warm_up_rounds
    assert warm_up == 2, "a warm-up of 100 ms in turns of 60 ms"
    every = sorted(number for each in numbers.values() for number in each)
    assert every == list(range(3 * warm_up, 3 * (warm_up + ROUNDS)))
    for each in numbers.values():
        assert [number // 3 for number in each] == list(range(warm_up, warm_up + ROUNDS))


def test_clients_send_one_after_the_other(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other"))
    turns = sorted(turn for record in records for turn in _spans(record))
    for (_, ends_s, _), (starts_s, _, _) in pairwise(turns):
        assert starts_s >= ends_s - 1e-6


def test_a_baseline_of_three_arms_has_two_turns_in_each_round(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other", "third"))
    assert [record.outcome.reason for record in records if not record.outcome.ok] == []
    numbers = {record.arm: record.rotation.numbers for record in records}
    assert {arm: len(each) for arm, each in numbers.items()} == {
        "plain": 2 * ROUNDS,
        "other": ROUNDS,
        "third": ROUNDS,
        "baseline-again": ROUNDS,
    }
    (plain,) = [record for record in records if record.arm == "plain"]
    assert len(plain.measurement.turns.operations) == 2 * ROUNDS
    (generation,) = generations_of(records)
    assert generation.rounds == ROUNDS


def _spans(record: RunRecord) -> list[tuple[float, float, str]]:
    """Measured turns on the clock of the generation's first turn."""
    assert record.rotation is not None
    assert record.measurement is not None
    zero_s = record.rotation.began_s
    turns = record.measurement.turns
    assert turns is not None
    pairs = zip(turns.settled_s, turns.ends_s, strict=True)
    return [(zero_s + settled, zero_s + ends, record.arm) for settled, ends in pairs]


def test_server_and_client_have_cpus_of_their_own(rig: Any, rotation: Any) -> None:
    for record in rig.execute(rotation()):
        assert record.settings["sut"]["limits"]["cpus"] == "0"
        assert record.settings["client"]["limits"]["cpus"] == "1"


def test_the_shared_time_counts_once(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other"))
    shared = [sum(time.seconds for time in record.phases if time.phase is Phase.MEASURE) for record in records]
    alone = [sum(time.seconds for time in record.phases if time.phase is Phase.LOAD) for record in records]
    for record, together_s, own_s in zip(records, shared, alone, strict=True):
        assert record.machine_s < own_s + together_s + sum(
            time.seconds for time in record.phases if time.phase not in {Phase.LOAD, Phase.MEASURE}
        )
        (measure,) = (time for time in record.phases if time.phase is Phase.MEASURE)
        assert record.share_of(measure) == pytest.approx(measure.seconds / 3)


def test_one_failed_run_voids_the_generation(rig: Any, rotation: Any) -> None:
    records = rig.execute(rotation("other", fault="crash"))
    assert [record.outcome.ok for record in records] == [False] * 3
    assert any("told to crash" in (record.outcome.reason or "") for record in records)
    assert rig.leftovers == []


def test_another_attempt_makes_a_failed_generation_good(rig: Any, rotation: Any, tmp_path: Any) -> None:
    plan = rotation("other", fault="crash", fault_log=str(tmp_path / "log"), fault_times=1, retries=1)
    assert [record.outcome.ok for record in rig.execute(plan)] == [False] * 3 + [True] * 3


def test_a_generation_that_is_not_whole_is_made_again(rig: Any, rotation: Any) -> None:
    plan = rotation("other", generations=2)
    records = rig.execute(plan)
    first = [record for record in records if record.block == 1]
    again = rig.execute(plan, StudyState().plus(*first))
    assert {record.block for record in again} == {2}
    assert len(again) == 3
