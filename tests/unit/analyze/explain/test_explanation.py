"""Known answers: what is put into an arm's runs comes out as its cause, with its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import Estimate, analyze
from tare.analyze.explain.components import DAEMONS, USER
from tare.analyze.explain.explanation import HELPERS, ArmExplanation, Pairing, explain, explain_arm
from tare.analyze.explain.parts import change
from tare.analyze.explain.run_times import RunTimes
from tare.analyze.explain.sampled import CpuSide
from tare.analyze.explain.waiting import Wait
from tare.record.run_record import RunRecord
from tare.report.explain.words import sentence
from tare.study.model import Study

BASE = {
    (CpuSide.SERVER, USER): 60.0,
    (CpuSide.SERVER, "tcp-ip"): 20.0,
    (CpuSide.CLIENT, USER): 20.0,
    (CpuSide.OTHER, USER): 500.0,
}
UNKNOWN = Estimate(None, None, None, 0, 0.95, "paired-log-ratio-t")
NOISE = (0.98, 1.01, 1.0, 1.02, 0.99)
"""Of each block, the same in all its arms: pairing takes it out."""


def times(cpu_us: Mapping[tuple[CpuSide, str], float] | None, noise: float = 1.0, **others: Any) -> RunTimes:
    scaled = None if cpu_us is None else {key: used * noise for key, used in cpu_us.items()}
    given: dict[str, Any] = {"counted_us": {CpuSide.SERVER: 80.0 * noise}, "waited_us": {}, "counts": {}} | others
    return RunTimes(operations=1000.0, cpu_us=scaled, **given)


def explained(arms: Mapping[str, RunTimes], blocks: int = 5) -> ArmExplanation:
    """`arms`: bare, the baseline, and one more; each block's own noise is put on both."""
    study: Study = synthetic.study(tuple(arms), blocks=blocks)
    records: list[RunRecord] = synthetic.records(tuple(arms), blocks)

    def of(record: RunRecord) -> RunTimes:
        run, noise = arms[record.arm], NOISE[record.block - 1]
        scaled = None if run.cpu_us is None else {key: used * noise for key, used in run.cpu_us.items()}
        return RunTimes(run.operations, scaled, run.counted_us, run.waited_us, run.counts, lacks=run.lacks)

    return explain(study, records, of).arms[0]


def test_what_was_added_comes_first_with_its_size_and_the_parts_add_up() -> None:
    added = {
        **BASE,
        (CpuSide.SERVER, "netfilter"): 4.0,
        (CpuSide.CLIENT, "netfilter"): 2.0,
        (CpuSide.SERVER, "bridge"): 3.0,
    }
    answer = explained({"bare": times(BASE), "bridge": times(added)})
    assert answer.first is not None
    assert answer.first.name == "netfilter"
    assert answer.first.change.added_us == pytest.approx(6.0)
    assert answer.first.change.shown
    assert answer.total is not None
    assert answer.total.baseline_us == pytest.approx(100.0)
    assert sum(part.change.added_us for part in answer.causes) == pytest.approx(answer.total.change.added_us)
    assert sum(part.change.added_us for part in answer.sides) == pytest.approx(answer.total.change.added_us)


def test_an_arm_s_overhead_is_that_of_the_metric_cpu_per_operation() -> None:
    study, records = synthetic.study(("bare", "bridge")), synthetic.records(("bare", "bridge"), 5)
    (answer,) = explain(study, records, lambda _: None).arms
    expected = analyze(study, records).finding("bridge", "cpu_per_operation").estimate
    assert expected.point is not None
    assert answer.overhead == expected


def test_time_of_others_is_no_part_of_an_operation() -> None:
    busy = {**BASE, (CpuSide.OTHER, USER): 5000.0}
    answer = explained({"bare": times(BASE), "bridge": times(busy)})
    assert answer.total is not None
    assert answer.total.change.added_us == pytest.approx(0.0)


def test_the_engine_s_daemons_are_told_beside_an_operation_and_charge_no_arm() -> None:
    busy = {**BASE, (CpuSide.ENGINE, USER): 900.0, (CpuSide.SHIM, USER): 3.0}
    answer = explained({"bare": times(BASE), "bridge": times(busy)})
    assert answer.total is not None
    assert answer.total.change.added_us == pytest.approx(3.0)
    assert [part.title for part in answer.causes if part.change.added_us > 0] == ["its shim"]
    assert "engine" not in {part.name for part in answer.sides}
    blocks = [times(BASE, daemons_us=50.0)] * 4, [times(BASE, daemons_us=10.0)] * 4
    beside = explain_arm("bridge", "bare", Pairing(*blocks), UNKNOWN)
    (daemons,) = [part for part in beside.rest if part.name == DAEMONS]
    assert (daemons.us, daemons.baseline_us, daemons.change.added_us) == (50.0, 10.0, 40.0)


def test_docker_proxy_is_one_cause_whatever_functions_it_is_in() -> None:
    proxied = {
        **BASE,
        (CpuSide.HELPER, "tcp-ip"): 30.0,
        (CpuSide.HELPER, "copying"): 20.0,
        (CpuSide.SERVER, "tcp-ip"): 40.0,
    }
    answer = explained({"bare": times(BASE), "published-loopback": times(proxied)})
    assert answer.first is not None
    assert answer.first.name == HELPERS
    assert answer.first.change.added_us == pytest.approx(50.0)
    assert {part.name for part in answer.cells} >= {"helper:tcp-ip", "helper:copying", "server:tcp-ip"}


@pytest.mark.parametrize(
    ("mine", "theirs", "title"),
    [
        ({"pasta": 50.0}, {}, "pasta"),
        ({"slirp4netns": 2.0, "rootlessport": 48.0}, {}, "rootlessport and slirp4netns"),
        ({"pasta": 50.0}, {"docker-proxy": 9.0}, "pasta, in place of docker-proxy"),
        ({"docker-proxy": 50.0}, {"docker-proxy": 9.0}, "docker-proxy"),
        ({}, {"rootlessport": 50.0}, "rootlessport"),
        ({}, {}, "carrier of its port"),
    ],
)
def test_the_title_names_the_programs_that_carried_the_bytes(
    mine: Mapping[str, float], theirs: Mapping[str, float], title: str
) -> None:
    carried = {**BASE, (CpuSide.HELPER, "copying"): 50.0}
    blocks = [times(carried, carriers_us=mine)] * 3, [times(BASE, carriers_us=theirs)] * 3
    answer = explain_arm("published", "bare", Pairing(*blocks), UNKNOWN)
    assert answer.first is not None
    assert (answer.first.name, answer.first.title) == (HELPERS, title)
    assert f"{title} 50.0" in sentence(answer)


def test_waiting_is_first_where_it_added_more_than_any_cpu_time() -> None:
    still = times(BASE, waited_us={("server", Wait.THROTTLED): 0.0})
    held = times(BASE, waited_us={("server", Wait.THROTTLED): 300.0})
    answer = explained({"bare": still, "bridge": held})
    assert answer.first is not None
    assert (answer.first.name, answer.first.change.added_us) == ("waiting: throttled", 300.0)


def test_a_kind_of_waiting_that_one_side_does_not_tell_is_left_out() -> None:
    answer = explained({"bare": times(BASE), "bridge": times(BASE, waited_us={("server", Wait.DISK): 9.0})})
    assert answer.waits == ()


def test_without_stacks_the_sides_are_told_by_counters_and_what_lacks_is_said() -> None:
    bare = times(None, counted_us={CpuSide.SERVER: 80.0}, lacks=("no stacks",))
    bridge = times(None, counted_us={CpuSide.SERVER: 88.0}, lacks=("no stacks",))
    answer = explained({"bare": bare, "bridge": bridge})
    assert answer.causes == ()
    (server,) = answer.sides
    assert server.name == "server"
    assert server.change.added_us == pytest.approx(8.0)
    assert answer.total is not None
    assert answer.total.us == pytest.approx(88.0)
    assert answer.lacks == ("no stacks",)


def test_sampled_and_counted_runs_are_not_compared_with_each_other() -> None:
    answer = explained({"bare": times(None), "bridge": times(BASE)})
    assert answer.total is None
    assert answer.causes == ()


def test_the_share_without_a_name_is_of_the_kernels_time() -> None:
    answer = explained({"bare": times(BASE), "bridge": times({**BASE, (CpuSide.SERVER, "not-named"): 5.0})})
    assert answer.unnamed == pytest.approx(5.0 / 25.0)


def test_what_counters_tell_beyond_the_samples_is_said() -> None:
    server_times = times(BASE, counted_us={CpuSide.SERVER: 100.0})
    assert explained({"bare": server_times, "bridge": server_times}).unsampled == pytest.approx(0.2, abs=0.01)


def test_an_interval_is_students_over_paired_differences() -> None:
    estimate = change([4.0, 6.0, 5.0])
    # mean 5, s = 1, t(2, 0.975) = 4.302653, so ± 4.302653 / sqrt(3)
    assert estimate.low == pytest.approx(2.515863)
    assert estimate.high == pytest.approx(7.484137)
    assert estimate.shown
    assert not change([-4.0, 6.0, 5.0]).shown
    thin = change([4.0, 6.0])
    assert (thin.added_us, thin.low, thin.why) == (5.0, None, "2 blocks only; an interval needs 3")


def test_a_sure_part_stands_before_a_wild_one_of_a_larger_mean() -> None:
    def run(own: float, netfilter: float) -> RunTimes:
        return times({(CpuSide.SERVER, USER): own, (CpuSide.SERVER, "netfilter"): netfilter})

    baseline = [run(100.0, 0.0) for _ in range(4)]
    arm = [run(100.0 + wild, 5.0 + small) for wild, small in ((60, 0.1), (-40, -0.1), (50, 0.0), (-10, 0.1))]
    answer = explain_arm("bridge", "bare", Pairing(arm, baseline), UNKNOWN)
    assert answer.causes[0].name == "user:server"
    assert answer.first is not None
    assert answer.first.name == "netfilter"


def test_nothing_stands_first_where_nothing_is_shown() -> None:
    run = [times({(CpuSide.SERVER, USER): used}) for used in (100.0, 120.0, 90.0)]
    again = [times({(CpuSide.SERVER, USER): used}) for used in (105.0, 100.0, 110.0)]
    assert explain_arm("bridge", "bare", Pairing(run, again), UNKNOWN).first is None
