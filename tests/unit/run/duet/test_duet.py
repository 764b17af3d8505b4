"""Two attempts at once, on fakes: they are measured together, swapped half-way, and good together or not at all."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.record.parts import as_tree

from tare.deployments import Instance
from tare.errors import RunFailed
from tare.plan.model import Plan
from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import Phase, RunRecord
from tare.record.swap_halves import throughput_of
from tare.run.duet.attempt import half_way_s
from tare.run.duet.barrier import ArmUnderLoad
from tare.run.events import Event, PhaseStarted
from tare.run.execute import execute
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.resume import StudyState, finished
from tare.study.protocol_spec import DuetSpec
from tare.workloads.fake import FakeParameters

pytestmark = pytest.mark.timed
PHASES = (Phase.LOAD, Phase.MEASURE, Phase.COLLECT)


@pytest.fixture
def duet(plans: Any) -> Any:
    """Makes a plan of a baseline and its control in a duet, one block; long enough for a busy machine."""

    def make(*arms: str, **workload: Any) -> Plan:
        spec = DuetSpec(name="duet", blocks=1, retries=workload.pop("retries", 0), seed=3)
        parameters = {"measure_s": 2.5, "window_s": 0.1, **workload}
        plan: Plan = plans(arms=("plain", *arms), protocol=spec, **parameters)
        return plan

    return make


class Moves:
    """Stands in for control groups: who was moved where."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def __call__(self, instance: Instance, cpus: str) -> None:
        self.made.append((instance.task.name.rpartition("-")[2], cpus))


def reasons_of(records: list[RunRecord]) -> list[str | None]:
    return [record.outcome.reason for record in records]


def blocks_of(records: list[RunRecord]) -> list[list[RunRecord]]:
    return [[one for one in records if one.block == block] for block in sorted({one.block for one in records})]


def test_a_block_is_the_baseline_with_each_other_arm_and_both_are_good(rig: Any, duet: Any) -> None:
    moves = Moves()
    rig.swap(set_cpus=moves)
    records = rig.execute(duet("other"))
    assert all(record.outcome.ok for record in records), [record.outcome for record in records]
    pairs = [{record.arm for record in block} for block in blocks_of(records)]
    assert sorted(pairs, key=sorted) == [{"plain", "baseline-again"}, {"plain", "other"}]
    assert Counter(moves.made) == {("sut", "0"): 2, ("sut", "1"): 2, ("measure", "0"): 2, ("measure", "1"): 2}
    assert rig.leftovers == [], [record.notices for record in records]


def test_both_are_measured_at_the_same_time(rig: Any, duet: Any) -> None:
    rig.swap(set_cpus=Moves())
    for block in blocks_of(rig.execute(duet(warmup_s=0.2))):
        assert all(record.outcome.ok for record in block), reasons_of(block)
        spans = []
        for record in block:
            (measure,) = (time for time in record.phases if time.phase is Phase.MEASURE)
            spans.append((measure.began_at, measure.began_at + measure.seconds))
        overlap = min(end for _, end in spans) - max(begin for begin, _ in spans)
        assert overlap > 0.6 * 2.5


def test_each_tells_its_partner_its_cpus_and_both_halves(rig: Any, duet: Any) -> None:
    rig.swap(set_cpus=Moves())
    for first, second in blocks_of(rig.execute(duet())):
        assert first.duet is not None
        assert second.duet is not None
        assert (first.duet.partner, second.duet.partner) == (second.run_id, first.run_id)
        assert (first.duet.cpus, second.duet.cpus) == (("0", "1"), ("1", "0"))
        assert first.settings["sut"]["limits"]["cpus"] == first.settings["client"]["limits"]["cpus"] == "0"
        for record in (first, second):
            assert record.outcome.ok, record.outcome
            assert record.duet is not None
            rates = record.duet.rates
            assert rates is not None
            assert throughput_of(record) == pytest.approx((rates[0] * rates[1]) ** 0.5)
            counted = sum(half.windows for half in record.duet.halves or ())
            assert counted + (record.duet.windows_dropped or 0) == 25
            started_s = max(each.duet.started_s or 0.0 for each in (first, second) if each.duet is not None)
            assert 1.2 < as_tree(record.duet)["swap_began_s"] - started_s < 2.4
            assert record.duet.began_by == "generator"
            assert started_s <= as_tree(record.duet)["both_from_s"] < as_tree(record.duet)["swap_began_s"]


@pytest.mark.parametrize(("fault", "by"), [("late", "generator"), ("late-unreported", "end")])
def test_clients_that_begin_late_are_swapped_half_way_and_cut_where_they_drove(
    rig: Any, duet: Any, fault: str, by: str
) -> None:
    rig.swap(set_cpus=Moves())
    for pair in blocks_of(rig.execute(duet(warmup_s=0.3, fault=fault, measure_s=5.0))):
        started_s = max(as_tree(record.duet).get("started_s", 0.0) for record in pair)
        for record in pair:
            times, load = as_tree(record.duet), record.usage and record.usage.driven
            assert load is not None, record.outcome
            assert times.get("began_by") == by == load.by, record.outcome
            latest = load.began_monotonic_s
            assert 0.6 < latest - times["started_s"] < 1.6
            assert times["began_from_s"] <= latest <= times["began_until_s"]
            assert (times["began_from_s"] == times["started_s"]) is (by == "end")
            assert times["swap_began_s"] > started_s + 2.5 + 0.3, "later than half-way since their processes began"
            assert all(half["windows"] >= (10 if by == "generator" else 1) for half in times["halves"])


def test_half_way_is_counted_from_when_the_slower_one_should_begin() -> None:
    parameters = [FakeParameters(measure_s=20, window_s=1, warmup_s=10), FakeParameters(measure_s=30, window_s=1)]
    playing = [ArmUnderLoad((), "1", 100.0, 19.0), ArmUnderLoad((), "0", 101.0, None)]
    assert half_way_s(playing, parameters) == 114.5
    assert half_way_s([ArmUnderLoad((), "1", 100.0, 9.5), playing[1]], parameters) == 111.0


def test_a_client_that_warms_up_in_its_own_process_measures_from_when_that_is_over() -> None:
    parameters = [FakeParameters(measure_s=20, window_s=1, warmup_s=15)] * 2
    playing = [ArmUnderLoad((), "1", 100.0, own_warmup_s=15), ArmUnderLoad((), "0", 100.5, own_warmup_s=15)]
    assert half_way_s(playing, parameters) == 125.5


def test_time_spent_together_is_counted_once(rig: Any, duet: Any) -> None:
    rig.swap(set_cpus=Moves())
    plan = duet()
    records = rig.execute(plan)
    for record in records:
        (measure,) = (time for time in record.phases if time.phase is Phase.MEASURE)
        assert record.machine_s == pytest.approx(sum(t.seconds for t in record.phases) - _together(record) / 2)
        assert record.share_of(measure) == measure.seconds / 2
    done = finished(plan, StudyState.from_records(records))
    assert [block.seconds for block in done] == [
        pytest.approx(sum(each.machine_s for each in pair)) for pair in blocks_of(records)
    ]


def _together(record: RunRecord) -> float:
    shared = (Phase.WARM_UP, Phase.MEASURE, Phase.COOL_DOWN)
    return sum(time.seconds for time in record.phases if time.phase in shared)


@pytest.mark.parametrize("fault", ["errors", "crash"])
def test_when_one_fails_both_are_void_and_both_are_tried_again(
    rig: Any, duet: Any, fault: str, tmp_path: Any
) -> None:
    rig.swap(set_cpus=Moves())
    records = rig.execute(duet(retries=1, fault=fault, fault_times=1, fault_log=str(tmp_path / "log")))
    first, again = blocks_of(records)[0][:2], blocks_of(records)[0][2:]
    assert [(record.attempt, record.outcome.ok) for record in first] == [(1, False)] * 2
    assert [(record.attempt, record.outcome.ok) for record in again] == [(2, True)] * 2, reasons_of(records)
    reasons = sorted("which ran at the same time" in (record.outcome.reason or "") for record in first)
    assert reasons == [False, True], [record.outcome.reason for record in first]
    assert all(record.measurement is None for record in first)
    assert rig.leftovers == [], [record.notices for record in records]


@pytest.mark.parametrize("fault", ["start", "effective"])
def test_when_one_cannot_be_made_ready_the_other_is_void_too(rig: Any, duet: Any, fault: str) -> None:
    rig.swap(set_cpus=Moves())
    records = rig.execute(duet(settings={"fault": fault}))
    assert [record.outcome.ok for record in records] == [False] * 2
    assert rig.leftovers == [], [record.notices for record in records]


def test_a_swap_that_cannot_be_made_voids_both(rig: Any, duet: Any) -> None:
    def refuse(instance: Instance, cpus: str) -> None:
        raise RunFailed(f"no control group for {cpus}")

    rig.swap(set_cpus=refuse)
    records = rig.execute(duet(measure_s=4.0))
    assert [record.outcome.ok for record in records] == [False] * 2, reasons_of(records)
    assert all("could not be swapped: no control group" in (record.outcome.reason or "") for record in records)
    assert all(_lasted(record) < 3.9 for record in records), "it is not measured to the end"
    assert rig.leftovers == [], [record.notices for record in records]


def _lasted(record: RunRecord) -> float:
    return sum(time.seconds for time in record.phases if time.phase is Phase.MEASURE)


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_in_any_phase_of_either_tears_both_down(rig: Any, duet: Any, phase: Phase) -> None:
    interrupts = Interrupts()
    rig.swap(interrupts=interrupts, set_cpus=Moves())
    kept: list[RunRecord] = []
    plan = duet("other", cooldown_s=0.1, warmup_s=0.1)

    def press(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is phase and event.run.position == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with interrupts.installed(), pytest.raises(Interrupted):
        _take(rig, plan, press, kept)
    late = phase in (Phase.COLLECT, Phase.TEARDOWN)
    assert [record.outcome.ok for record in kept] == ([True, True] if late else []), reasons_of(kept)
    assert rig.leftovers == []
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("tare-")] == []


def _take(rig: Any, plan: Plan, observer: Any, into: list[RunRecord]) -> None:
    for kept in execute(plan, rig.machine, rig.destination(), observer):
        into.extend(kept)


@pytest.mark.parametrize("phase", [Phase.MEASURE, Phase.TEARDOWN])
def test_a_crash_in_either_loses_both_and_both_are_made_again(rig: Any, duet: Any, phase: Phase) -> None:
    """Nothing is handed on to be kept before both are over, and then both at once."""
    rig.swap(set_cpus=Moves())
    plan, kept = duet(measure_s=5.0), list[RunRecord]()

    def die(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is phase and event.run.position == 1:
            raise SystemExit(137)

    with pytest.raises(SystemExit):
        _take(rig, plan, die, kept)
    assert kept == []
    ((first, second),) = execute(plan, rig.machine, rig.destination(), rig.events.append)
    assert [(one.attempt, one.outcome.ok) for one in (first, second)] == [(1, True)] * 2, reasons_of(
        [first, second]
    )


def test_what_ends_a_thread_ends_the_study(rig: Any, duet: Any) -> None:
    rig.swap(set_cpus=Moves())

    def die(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is Phase.MEASURE:
            raise SystemExit(9)

    with pytest.raises(SystemExit):
        _take(rig, duet(), die, [])
    assert rig.leftovers == []


def test_servers_that_differ_in_what_no_factor_names_are_refused_in_their_first_block(rig: Any, plans: Any) -> None:
    spec = DuetSpec(name="duet", blocks=1, seed=3, retries=0)
    plan = plans(arms=("plain", "other"), protocol=spec, measure_s=2.5, window_s=0.1)
    other = plan.study.arms[1]
    sut = other.settings.sut.model_copy(update={"settings": {"delay_ms": 2}})
    changed = other.model_copy(update={"settings": other.settings.model_copy(update={"sut": sut})})
    arms = (plan.study.arms[0], changed, plan.study.arms[2])
    plan = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": arms})})
    rig.swap(set_cpus=Moves())
    pair = next(block for block in blocks_of(rig.execute(plan)) if {one.arm for one in block} == {"plain", "other"})
    assert [record.outcome.ok for record in pair] == [False, False]
    assert any(record.outcome.refused and "delay_ms" in (record.outcome.reason or "") for record in pair)


def test_a_server_that_works_the_disk_is_refused(rig: Any, duet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.run.duet.attempt.MOST_BYTES_PER_S", -1)
    monkeypatch.setattr(
        "tare.run.attempt.attempt.with_traces",
        lambda usage, *_: replace(usage, sut_read_bytes=0.0),
    )
    rig.swap(set_cpus=Moves())
    records = rig.execute(duet())
    assert not any(record.outcome.ok for record in records)
    assert any(record.outcome.refused and "share the disk" in (record.outcome.reason or "") for record in records)


def test_docker_proxy_belongs_to_no_slot(rig: Any, duet: Any) -> None:
    rig.swap(set_cpus=Moves(), observe_path=lambda server, client, host: NetworkPath(Hop.DOCKER_PROXY))
    records = rig.execute(duet())
    assert any(record.outcome.refused and "docker-proxy" in (record.outcome.reason or "") for record in records)
