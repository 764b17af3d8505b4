"""Predictions of an open loop at a rate, of other storages, and of YCSB, against machines whose answer is known."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import pytest
from tests.unit.analyze import synthetic
from tests.unit.knowledge.test_prediction import cost, costs, profile, run

from tare.knowledge.claim import Setup
from tare.knowledge.event_costs import EventCost, costs_of
from tare.knowledge.predictions.model_error import ASSUMED, CPU, LATENCY, Outcome, learned_errors
from tare.knowledge.predictions.prediction import predicted, predictions
from tare.knowledge.predictions.prediction_text import prediction_lines
from tare.knowledge.predictions.profile import profile_of
from tare.knowledge.predictions.round_trips import requests_per_operation
from tare.knowledge.unit_costs import UnitCosts
from tare.record.run_record import RunRecord
from tare.study.catalogue import find_study
from tare.study.reading.load import load
from tare.study.registry import installed


def events(where: Literal["bare", "container"], **ns: float) -> tuple[EventCost, ...]:
    """fsync and read on each storage, exactly so many nanoseconds, of which half is CPU time."""
    of = {name: {"first": [value] * 3, "second": [value] * 3} for name, value in ns.items()}
    cpu = {name: {"first": [value / 2] * 3, "second": [value / 2] * 3} for name, value in ns.items()}
    every = {"fsync": of, "read": of, "write-cpu": cpu, "read-cpu": cpu}
    printed = json.dumps({"events": every, "lacks": []}).encode()
    return costs_of(printed, where, None if where == "bare" else "default")[0]


def weighed(*, layer: float = 100.0, tmpfs: float = 1.0) -> UnitCosts:
    of = (*events("bare", host=100.0, tmpfs=tmpfs), *events("container", bind=100.0, layer=layer))
    path = {"deployment": "container", "client": "bare", "network": "host"}
    free = [
        cost(quantity, 0.0, load_=at).model_copy(update=path)
        for quantity, at in (("sut-cpu", "busy"), ("time", "alone"))
    ]
    return costs(*free).model_copy(update={"events": of})


def on(storage: str) -> Setup:
    return Setup(deployment="container", client="bare", network="host", storage=storage)


def on_disk(busy: float, **of: Any) -> RunRecord:
    disk = {
        "name": "vda",
        "busy": busy,
        "write_ms": 1.0,
        "writes_per_s": 1000.0 * busy,
        "read_ms": None,
        "reads_per_s": 0.0,
    }
    return synthetic.changed(run(**of), lambda tree: tree["usage"].update(disk=disk))


def test_a_disk_that_sets_the_rate_is_relieved_by_memory() -> None:
    # The disk lets one operation through in 100 µs; without it the server's CPU does, one in 50 µs.
    of = profile_of([on_disk(0.95, per_s=10_000.0, sut=2.0, client=0.04, threads=64)])
    assert of is not None
    forecast = predicted("tmpfs", on("tmpfs"), of, weighed(tmpfs=1e-3))
    assert forecast.log_ratio is not None
    assert math.exp(forecast.log_ratio) == pytest.approx(2.0, rel=0.02)
    assert forecast.bound == "disk"


def test_reads_whose_time_is_unknown_are_not_free() -> None:
    lacking = synthetic.changed(on_disk(0.95), lambda tree: tree["usage"]["disk"].update(reads_per_s=500.0))
    of = profile_of([lacking])
    assert of is not None
    assert of.disk is None


def test_a_layer_that_takes_twice_as_long_halves_what_its_disk_sets() -> None:
    of = profile_of([on_disk(0.95, per_s=10_000.0, sut=0.4, client=0.04, threads=64)])
    assert of is not None
    forecast = predicted("layer", on("layer"), of, weighed(layer=200.0))
    assert forecast.log_ratio == pytest.approx(-math.log(2), abs=0.02)


def of_writes(per_operation: float, **of: Any) -> RunRecord:
    """A run whose disk is hardly busy with this many writes an operation."""
    made = run(**of)
    per_s = of.get("per_s", 10_000.0)
    disk = {
        "name": "vda",
        "busy": 0.01,
        "write_ms": 0.01,
        "writes_per_s": per_operation * per_s,
        "reads_per_s": 0.0,
    }
    return synthetic.changed(made, lambda tree: tree["usage"].update(disk=disk))


def slow_writes() -> UnitCosts:
    """A write takes the server's thread 40 µs on the disk, and 2 µs in memory."""
    return weighed().model_copy(update={"events": events("bare", host=80_000.0, tmpfs=4_000.0)})


def test_writes_to_memory_spare_a_busy_server_their_cpu_time() -> None:
    # 200 µs of the only CPU for an operation with half a write: 19 µs less, so 10.5 % more operations.
    of = profile_of([of_writes(0.5, per_s=5_000.0, sut=4.0, client=0.4, threads=64)])
    assert of is not None
    forecast = predicted("tmpfs", on("tmpfs"), of, slow_writes())
    assert forecast.log_ratio == pytest.approx(math.log(200 / 181), abs=0.01)


def test_at_a_rate_they_spare_cpu_time_and_what_waits_for_it() -> None:
    of = profile_of([of_writes(2.0, rate=1_000.0, per_s=1_000.0, sut=0.8, client=0.04)])
    assert of is not None
    assert of.cpu_us is not None
    cpu = predicted("tmpfs", on("tmpfs"), of, slow_writes(), metric=CPU)
    assert cpu.log_ratio == pytest.approx(math.log1p(-76 / of.cpu_us))
    latency = predicted("tmpfs", on("tmpfs"), of, slow_writes(), metric=LATENCY)
    assert latency.log_ratio is not None
    assert latency.log_ratio < -0.01


def test_an_idle_disk_makes_no_difference_and_a_bind_mount_is_the_hosts() -> None:
    of = profile_of([on_disk(0.0)])
    assert of is not None
    assert predicted("tmpfs", on("tmpfs"), of, weighed()).log_ratio == pytest.approx(0.0)
    bound = profile_of([on_disk(0.9)])
    assert bound is not None
    assert predicted("bind", on("bind"), bound, weighed(tmpfs=50.0)).log_ratio == pytest.approx(0.0)


def test_writes_that_nobody_counted_are_not_taken_for_none() -> None:
    def uncounted(tree: dict[str, Any]) -> None:
        tree["usage"]["disk"]["writes_per_s"] = None

    of = profile_of([synthetic.changed(of_writes(0.5), uncounted)])
    assert of is not None
    assert predicted("tmpfs", on("tmpfs"), of, slow_writes()).why_none == (
        "the bare runs do not show how long the disk was busy, or how much it did"
    )


def test_a_storage_that_nobody_weighed_has_no_prediction_and_says_why() -> None:
    of = profile_of([on_disk(0.9)])
    assert of is not None
    assert predicted("a", on("nfs"), of, weighed()).why_none == "there is no unit cost for the storage nfs"
    assert predicted("a", on("tmpfs"), profile(), weighed()).why_none == (
        "the bare runs do not show how long the disk was busy, or how much it did"
    )
    without = weighed().model_copy(
        update={"events": [each for each in weighed().events if each.event != "write-cpu"]}
    )
    assert predicted("a", on("tmpfs"), of, without).why_none == (
        "the CPU time of writes on the storage tmpfs was not measured: `tare weigh` does"
    )


def test_an_open_loop_of_a_store_is_told_in_cpu_time_and_latency() -> None:
    study = load(find_study("unit-costs"), installed(), "quick")
    runs = [
        run(block, arm, rate=5_000.0, per_s=5_000.0, sut=sut)
        for block in (1, 2, 3)
        for arm, sut in (("bare-busy", 2.0), ("bridge-busy", 2.2))
    ]
    known = costs(cost("sut-cpu", 5.0), cost("time", 20.0, load_="alone"))
    made = [each for each in predictions(study, runs, known) if each.arm == "bridge-busy"]
    assert [each.metric for each in made] == [CPU, LATENCY]
    assert made[0].measured == pytest.approx(math.log(1.1))
    assert made[0].log_ratio == pytest.approx(math.log(1.05))
    shown = " ".join(" ".join(prediction_lines(made, 100)).split())
    assert "Predicted against bare" in shown
    assert "bridge-busy, CPU/op +5.0 %" in shown


def test_each_metric_has_an_error_of_its_own() -> None:
    of = [Outcome("s", "study", "arm", -0.1 * n, 0.01, -0.1 * n, 0.01) for n in range(1, 9)]
    cpu = [Outcome("s", "study", "arm", 0.1 * n, 0.01, 0.2 * n, 0.01, CPU) for n in range(1, 9)]
    learned = learned_errors([*of, *cpu])
    assert learned.slope == pytest.approx(1.0, abs=0.05)
    assert learned.of(CPU).slope > 1.5
    assert learned.of(LATENCY) == ASSUMED
    assert type(learned).model_validate_json(learned.model_dump_json()) == learned


def of_ycsb(database: str, kinds: dict[str, tuple[int, int]], operations: int, **workload: Any) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        tree["measurement"] |= {
            "operations": operations, "queries_per_s": None,
            "by_operation": {name: {"operations": done, "errors": bad} for name, (done, bad) in kinds.items()},
        }  # fmt: skip
        tree["settings"] = {
            "sut": {"database": database}, "workload_name": "ycsb", "workload": {"threads": 4, **workload},
        }  # fmt: skip

    return synthetic.changed(run(), change)


def test_ycsb_sends_what_its_binding_sends_for_each_kind_of_operation() -> None:
    assert requests_per_operation(of_ycsb("redis", {"read": (90, 0), "update": (9, 1)}, 100)) == 1.0
    assert requests_per_operation(of_ycsb("redis", {"insert": (100, 0)}, 100)) == 2.0
    assert requests_per_operation(of_ycsb("cassandra", {"insert": (100, 0)}, 100)) == 1.0


def test_a_read_modify_write_is_its_read_and_its_update() -> None:
    kinds = {"read": (100, 0), "update": (50, 0), "read-modify-write": (50, 0)}
    assert requests_per_operation(of_ycsb("mariadb", kinds, 100)) == 1.5


def test_what_has_no_fixed_number_of_requests_is_not_told() -> None:
    assert requests_per_operation(of_ycsb("redis", {"scan": (5, 0), "insert": (5, 0)}, 10)) is None
    assert requests_per_operation(of_ycsb("redis", {"read": (10, 0)}, 10, home="/opt/own")) is None
    uncommitted = {"properties": {"jdbc.autocommit": "false"}}
    assert requests_per_operation(of_ycsb("mariadb", {"insert": (10, 0)}, 10, **uncommitted)) is None
    assert requests_per_operation(of_ycsb("sqlite", {"read": (10, 0)}, 10)) is None


def test_ycsbs_arms_have_a_profile() -> None:
    of = profile_of([of_ycsb("redis", {"read": (40_000, 0)}, 40_000)])
    assert of is not None
    assert (of.requests, of.flying) == (1.0, 4.0)
