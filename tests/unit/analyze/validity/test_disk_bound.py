"""Work that is meant to be bound by the disk, and was not, is told; what set the rate of an arm is told of any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.bottleneck import bottleneck_of
from tare.analyze.columns import Columns
from tare.analyze.runs import select_runs
from tare.analyze.validity import Alarm, check
from tare.record.run_record import RunRecord

ARMS = ("bare", "bridge")
DISK = {"name": "vda", "busy": 0.97, "depth": 6.0, "reads_per_s": 2000.0, "writes_per_s": 700.0}
WAITING = {"cpus": 1.0, "busy": 0.4, "waiting": 0.2, "waiting_io": 0.9}
CLIENT = {"cpus": 1.0, "busy": 0.3, "waiting": 0.1}


def runs(sut: dict[str, Any] | None = None, client: dict[str, Any] | None = None,
         disk: dict[str, Any] | None = DISK) -> list[RunRecord]:  # fmt: skip
    """Three blocks of both arms; by default the disk is busy and no CPU is."""

    def alter(tree: dict[str, Any]) -> None:
        tree["usage"]["saturation"] = {"sut": {**WAITING, **(sut or {})}, "client": {**CLIENT, **(client or {})}}
        if disk is not None:
            tree["usage"]["disk"] = {**DISK, **disk}

    return [synthetic.changed(run, alter) for run in synthetic.records(ARMS, 3)]


def alarms(records: Sequence[RunRecord], meant: Sequence[str] = ARMS) -> list[Alarm]:
    study = synthetic.study(ARMS, disk_bound={"path": tuple(meant)} if meant else {})
    return [alarm for alarm in check(study, select_runs(study, records)) if alarm.rule == "not-disk-bound"]


def test_a_busy_disk_before_idle_cpus_is_what_was_meant() -> None:
    assert alarms(runs()) == []


def test_waiting_for_a_disk_that_is_not_here_is_enough() -> None:
    assert alarms(runs(disk={"busy": 0.1})) == []
    assert alarms(runs(disk=None)) == []


def test_a_limit_that_is_reached_is_a_disk_at_its_end_though_the_device_is_idle() -> None:
    def limited(used: float) -> list[RunRecord]:
        def alter(tree: dict[str, Any]) -> None:
            tree["usage"]["disk_limit"] = {"per_s": 500, "used": used}

        idle = runs(sut={"waiting_io": 0.6}, disk={"busy": 0.05})
        return [synthetic.changed(run, alter) for run in idle]

    assert alarms(limited(0.95)) == []
    assert bottleneck_of(Columns(limited(0.95))).disk_limit_used == 0.95
    assert bottleneck_of(Columns(limited(0.95))).reached == ("disk",)
    (alarm, *_) = alarms(limited(0.8))
    assert "the limit on disk operations delayed the SUT 80.0 % of the time" in alarm.what


@pytest.mark.parametrize(
    ("sut", "client", "disk", "words"),
    [
        ({"busy": 0.97}, {}, {}, "the SUT used 97.0 % of its CPU time"),
        ({"waiting": 0.9}, {}, {}, "used 40.0 %"),
        ({}, {"busy": 0.95}, {}, "the client used 95.0 % of its own at most"),
        ({"waiting_io": 0.3}, {}, {"busy": 0.5}, "the busiest disk (vda) was busy 50.0 % of the time"),
    ],
    ids=["the SUT's CPU", "others' work", "the client", "nothing"],
)
def test_what_set_the_rate_in_its_place_is_told(
    sut: dict[str, Any], client: dict[str, Any], disk: dict[str, Any], words: str
) -> None:
    raised = alarms(runs(sut, client, disk))
    assert [alarm.arm for alarm in raised] == list(ARMS)
    assert words in raised[0].what
    assert len(raised[0].runs) == 3


def test_what_no_trace_tells_is_not_taken_for_bound() -> None:
    blind = alarms(runs({"waiting_io": None}, disk=None))
    assert "no trace shows a disk" in blind[0].what
    assert len(alarms(runs({"busy": None, "waiting": None, "cpus": None}, disk={"busy": 0.5}))) == 2


def test_arms_that_are_not_meant_so_are_left_alone() -> None:
    idle = runs({"waiting_io": 0.0}, disk={"busy": 0.0})
    assert alarms(idle, meant=()) == []
    assert [alarm.arm for alarm in alarms(idle, meant=("bridge",))] == ["bridge"]


def test_most_runs_decide() -> None:
    made = runs()
    cpu = runs({"busy": 0.97})
    assert alarms([*made[:4], *cpu[4:]]) == []
    assert len(alarms([*made[:2], *cpu[2:]])) == 2


def test_an_arm_tells_what_set_its_rate() -> None:
    limit = bottleneck_of(Columns(runs()))
    assert (limit.reached, limit.disk_busy, limit.sut_waiting_io) == (("disk",), 0.97, 0.9)
    assert bottleneck_of(Columns(runs({"busy": 0.95}))).reached == ("sut", "disk")
    assert bottleneck_of(Columns(runs({"waiting_io": 0.1}, disk={"busy": 0.1}))).reached == ()
    assert bottleneck_of(Columns(runs({"waiting_io": None}, disk=None))).reached is None
    assert bottleneck_of(Columns([])).disk_busy is None


def test_every_arm_has_mean_and_standard_deviation_of_its_runs() -> None:
    made = [synthetic.record(block, arm, tps) for arm in ARMS for block, tps in enumerate((90.0, 100.0, 110.0))]
    (bare, _) = analyze(synthetic.study(ARMS), made).arms
    level = bare.values["throughput"]
    assert (level.n, level.smallest, level.largest, level.mean, level.stddev) == (3, 90.0, 110.0, 100.0, 10.0)
    (one, _) = analyze(synthetic.study(ARMS), made[:1]).arms
    assert (one.values["throughput"].mean, one.values["throughput"].stddev) == (90.0, None)
