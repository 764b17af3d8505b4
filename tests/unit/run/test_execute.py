from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tare.record.network_path import Hop
from tare.record.run_record import Phase
from tare.run.resume import StudyState


def test_every_planned_run_gives_one_good_record_in_order(rig: Any, plans: Any) -> None:
    plan = plans(blocks=2, arms=("a", "b"))
    records = rig.execute(plan)
    assert [record.run_id for record in records] == [run.id for run in plan.runs]
    assert all(record.outcome.ok for record in records), [record.outcome for record in records]
    assert rig.leftovers == []


def test_a_record_tells_all_seven_phases_in_order(rig: Any, plans: Any) -> None:
    (record,) = rig.execute(plans())
    assert [time.phase for time in record.phases] == list(Phase)
    assert all(time.seconds >= 0 and time.began_at > 0 for time in record.phases)


def test_a_good_record_is_whole(rig: Any, plans: Any) -> None:
    (record,) = rig.execute(plans(warmup_s=0.1))
    assert record.measurement is not None
    assert record.measurement.operations > 0
    assert record.effective is not None
    assert record.path is not None
    assert record.path.hop is Hop.LOOPBACK
    assert record.path.client_dialled.address == "127.0.0.1"
    assert record.parity.sut is not None
    assert record.parity.client is not None
    assert record.images["sut"].digest
    assert record.notices == ()
    assert set(record.raw) >= {"measure.stdout", "measure.stderr", "sut.stdout", "sut.stderr", "warm-up.stdout"}
    assert all((rig.staging / f"{record.run_id}-1" / name).is_file() for name in record.raw)


def test_data_is_loaded_once_for_all_runs_that_share_it(empty_rig: Any, plans: Any) -> None:
    rig = empty_rig
    rig.execute(plans(blocks=2, arms=("a", "b")))
    snapshots = list(rig.machine.layout.snapshots.iterdir())
    assert len(snapshots) == 1
    kept = [entry.ident for entry in rig.machine.ledger.entries() if entry.keep]
    assert kept == [str(snapshots[0])]


def test_a_failed_run_is_retried_and_every_attempt_recorded(rig: Any, plans: Any, tmp_path: Any) -> None:
    plan = plans(retries=2, fault="errors", fault_times=2, fault_log=str(tmp_path / "faults"))
    records = rig.execute(plan)
    assert [(record.attempt, record.outcome.ok) for record in records] == [(1, False), (2, False), (3, True)]
    assert {record.outcome.failed_in for record in records[:2]} == {Phase.MEASURE}


def test_the_study_goes_on_after_a_run_that_never_succeeds(rig: Any, plans: Any) -> None:
    records = rig.execute(plans(arms=("a", "b"), retries=1, fault="crash"))
    assert Counter(record.arm for record in records) == {"a": 2, "b": 2}
    assert not any(record.outcome.ok for record in records)
    assert all(record.outcome.reason and "told to crash" in record.outcome.reason for record in records)
    assert all(record.measurement is None for record in records)
    assert rig.leftovers == []


@pytest.mark.parametrize("fault", ["errors", "no-events", "cut-short"])
def test_a_run_that_is_not_whole_is_failed_and_keeps_its_output(rig: Any, plans: Any, fault: str) -> None:
    (record,) = rig.execute(plans(fault=fault))
    assert record.outcome.failed_in is Phase.MEASURE
    assert (rig.staging / f"{record.run_id}-1" / "measure.stdout").stat().st_size > 0


@pytest.mark.parametrize("fault", ["initialise", "start", "effective", "shutdown"])
def test_teardown_runs_after_failed_load(rig: Any, plans: Any, fault: str) -> None:
    (record,) = rig.execute(plans(settings={"fault": fault}))
    assert record.outcome.failed_in is Phase.LOAD
    assert record.phases[-1].phase is Phase.TEARDOWN
    assert rig.leftovers == []


def test_a_run_that_is_done_is_not_made_again(rig: Any, plans: Any) -> None:
    plan = plans(blocks=2)
    done = StudyState(good=frozenset({plan.runs[0].id}))
    assert [record.run_id for record in rig.execute(plan, done)] == [plan.runs[1].id]


def test_attempts_count_on_from_earlier_sessions(rig: Any, plans: Any) -> None:
    plan = plans(retries=1, fault="errors")
    done = StudyState(attempts=Counter({plan.runs[0].id: 2}))
    assert [record.attempt for record in rig.execute(plan, done)] == [3, 4]


def test_a_study_that_is_done_touches_no_machine(rig: Any, plans: Any) -> None:
    plan = plans()
    rig.swap(sweep=None, prepare=None)
    assert rig.execute(plan, StudyState(good=frozenset(run.id for run in plan.runs))) == []
