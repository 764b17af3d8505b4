"""Unit costs from runs, and what they predict, against machines whose answer is known."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import measured

from tare.calibrate.summary import Identity
from tare.cli.study.weigh import render
from tare.errors import StoreError
from tare.knowledge.claim import Setup
from tare.knowledge.event_costs import EventCost, event_cost
from tare.knowledge.kept_costs import costs_dir, keep, read_costs
from tare.knowledge.predictions.path_costs import PathCosts, path_costs
from tare.knowledge.predictions.prediction import Prediction, _not_plain, predicted, predictions
from tare.knowledge.predictions.prediction_text import prediction_lines
from tare.knowledge.predictions.profile import Profile, profile_of
from tare.knowledge.predictions.traffic import Sent
from tare.knowledge.unit_costs import UnitCost, UnitCosts, unit_costs
from tare.record.run_record import RunRecord
from tare.report.interval_bar import LETTERS
from tare.sites.layout import Layout
from tare.study.catalogue import find_study
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import installed

IDENTITY = Identity(
    cpu_model="a CPU", cpu_count=2, memory_gib=16, kernel="6.18", engine="docker", engine_version="20.10"
)
BRIDGE = Setup(deployment="container", client="bare", network="bridge", storage="bind")
PATH = ("container", "bare", "bridge")


@pytest.fixture(scope="module")
def study() -> Study:
    return load(find_study("unit-costs"), installed(), "quick")


def cost(quantity: Any, us: float, *, load_: Any = "busy", se: float | None = 0.0) -> UnitCost:
    deployment, client, network = PATH
    return UnitCost(
        deployment=deployment, client=client, network=network, load=load_, quantity=quantity, us=us, se=se,
        low=None, high=None, n=8,
    )  # fmt: skip


def costs(*of: UnitCost) -> UnitCosts:
    return UnitCosts(tare="0.1.0", identity=IDENTITY, measured_at=0.0, digest="0" * 64, costs=of)


def run(
    block: int = 1, arm: str = "bare-busy", *, per_s: float = 10_000.0, sut: float = 4.0, client: float = 2.0,
    machine: float = 6.4, threads: int = 16, requests: float = 1.0, rate: float | None = None,
) -> RunRecord:  # fmt: skip
    """Four seconds on two CPUs; CPU seconds of each side, and of all."""

    def change(tree: dict[str, Any]) -> None:
        tree["measurement"] |= {
            "throughput_per_s": per_s, "operations": round(4 * per_s), "queries_per_s": requests * per_s,
        }  # fmt: skip
        tree["usage"] |= {
            "sut_cpu_s": sut, "client_cpu_s": client, "machine": {"user": machine, "idle": 8.0 - machine},
            "sut_cpus": 1.0, "client_cpus": 1.0, "wall_s": 4.0,
        }  # fmt: skip
        tree["host"] = {**tree["host"], "cpu_count": 2}
        tree["settings"] = {"workload": {"connections": threads, "rate": rate}}
        tree["levels"] = {}

    return synthetic.changed(synthetic.record(block, arm, 1000.0), change)


def profile(**of: Any) -> Profile:
    measured = profile_of([run(**of)])
    assert measured is not None
    return measured


def test_a_saturated_server_loses_what_the_path_adds_to_its_cpu_time() -> None:
    # 100 µs of the server's one CPU an operation, of 5 requests that cost 4 µs more each: 100 / 120.
    of = profile(per_s=10_000.0, sut=4.0, requests=5.0, threads=64)
    forecast = predicted("bridge", BRIDGE, of, costs(cost("sut-cpu", 4.0), cost("time", 4.0, load_="alone")))
    assert forecast.bound == "sut"
    assert forecast.log_ratio == pytest.approx(math.log(100 / 120))


def alone(workload: str, **of: Any) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        tree["settings"] = {"workload": {"threads": 1}, "workload_name": workload, "client": None}

    return synthetic.changed(run(requests=0.0, **of), change)


def calls(bare_ns: float, contained_ns: float) -> tuple[EventCost, ...]:
    def of(ns: float) -> dict[str, list[float]]:
        return {"first": [ns, ns + 10, ns - 10], "second": [ns, ns, ns]}

    inside = event_cost("syscall", of(contained_ns), where="container", seccomp="default")
    return event_cost("syscall", of(bare_ns), where="bare"), inside


CONTAINED = Setup(deployment="container", client=None, network="none", storage="host")


def test_a_program_without_a_server_loses_what_a_container_adds_to_its_system_calls() -> None:
    # A read takes 200 µs; the container's filter adds 0.5 µs to its one call.
    known = costs().model_copy(update={"events": calls(100.0, 600.0)})
    of = profile_of([alone("sysbench-fileio", per_s=5_000.0, sut=0.4)])
    assert of is not None
    forecast = predicted("container", CONTAINED, of, known)
    assert forecast.log_ratio == pytest.approx(math.log(200 / 200.5))
    assert (forecast.bound, forecast.kib) == ("time", 0.0)
    (line, *_) = [line for line in prediction_lines([forecast], 80) if "container" in line]
    assert line == "  container  -0.2 % [-8.1 %, +8.3 %], limited by time of each operation"


def test_a_program_that_makes_no_system_calls_is_predicted_to_lose_nothing() -> None:
    known = costs().model_copy(update={"events": calls(100.0, 600.0)})
    of = profile_of([alone("sysbench-cpu", per_s=5_000.0, sut=0.4)])
    assert of is not None
    forecast = predicted("container", CONTAINED, of, known)
    assert (forecast.log_ratio, forecast.bound) == (0.0, None)
    assert "container  +0.0 % [" in "\n".join(prediction_lines([forecast], 80))
    why = predicted("container", CONTAINED, of, costs()).why_none
    assert why == "what a container adds to a system call was not measured: `tare weigh` does"
    assert profile_of([alone("another")]) is None
    assert predicted("again", CONTAINED.model_copy(update={"deployment": "bare"}), of, known).why_none == (
        "it is deployed like the baseline"
    )


def hosted(sut: float, client: float, network: str = "host") -> tuple[UnitCost, ...]:
    made = (cost("sut-cpu", sut, se=0.3), cost("client-cpu", client, se=0.1), cost("time", 1.0, load_="alone"))
    return tuple(each.model_copy(update={"network": network}) for each in made)


def test_a_container_around_the_client_costs_it_what_one_around_the_server_costs_that() -> None:
    known = costs(*hosted(sut=2.0, client=0.5), *hosted(sut=20.0, client=1.0, network="published-address"))
    own = path_costs(("bare", "container", "host"), known)
    assert isinstance(own, PathCosts)
    assert (own.us("client", 0.0), own.us("sut", 0.0), own.waited.us) == (2.0, 0.5, 1.0)
    both = path_costs(("container", "container", "published-address"), known)
    assert isinstance(both, PathCosts)
    assert (both.us("client", 0.0), both.us("sut", 0.0), both.waited.us) == (3.0, 20.5, 2.0)
    assert both.us("client", 1.0) == pytest.approx(3.0 + math.hypot(0.3, 0.1))


@pytest.mark.parametrize("network", ["bridge", "host-client-nat", "published-loopback"])
def test_a_client_on_a_network_of_its_own_is_predicted_from_no_other_path(network: str) -> None:
    why = path_costs(("container", "container", network), costs(*hosted(sut=2.0, client=0.5)))
    assert why == f"there is no unit cost for container / container / {network}"


@pytest.mark.parametrize("client", ["bare", "container"])
def test_the_loopback_of_a_shared_namespace_costs_what_the_hosts_does(client: str) -> None:
    known = costs(*hosted(sut=2.0, client=0.5))
    assert path_costs(("container", client, "shared"), known) == path_costs(("container", client, "host"), known)
    assert path_costs(("vm", client, "shared"), known) == f"there is no unit cost for vm / {client} / shared"


def test_one_request_at_once_loses_by_its_time_and_not_by_cpu() -> None:
    # An operation takes 200 µs, most of it waiting; 20 µs are added.
    of = profile(per_s=5_000.0, sut=0.4, client=0.4, machine=0.8, threads=1)
    forecast = predicted("bridge", BRIDGE, of, costs(cost("sut-cpu", 4.0), cost("time", 20.0, load_="alone")))
    assert forecast.bound == "time"
    assert forecast.log_ratio == pytest.approx(math.log(200 / 220))


def test_a_station_that_the_path_fills_becomes_the_bound() -> None:
    # The machine uses half of its two CPUs; the path trebles what an operation takes there.
    of = profile(per_s=10_000.0, sut=2.0, client=2.0, machine=4.0, threads=16)
    forecast = predicted("bridge", BRIDGE, of, costs(cost("machine-cpu", 200.0), cost("time", 20.0, load_="alone")))
    assert forecast.bound == "machine"
    assert forecast.log_ratio == pytest.approx(math.log(2e6 * 0.95 / 300 / 10_000))


def test_no_path_is_predicted_to_give_time_back() -> None:
    of = profile(threads=64)
    forecast = predicted("bridge", BRIDGE, of, costs(cost("sut-cpu", -3.0), cost("time", -1.0, load_="alone")))
    assert forecast.log_ratio == pytest.approx(0.0)


def test_the_interval_grows_with_what_is_uncertain_of_the_costs() -> None:
    of = profile(threads=64)
    wide, narrow = (
        predicted("bridge", BRIDGE, of, costs(cost("sut-cpu", 10.0, se=se), cost("time", 1.0, load_="alone")))
        for se in (4.0, 0.1)
    )
    assert wide.low is not None
    assert narrow.low is not None
    assert narrow.log_ratio is not None
    assert wide.log_ratio == narrow.log_ratio
    assert wide.low < narrow.low < narrow.log_ratio


def test_a_path_without_unit_costs_has_no_prediction_and_says_why() -> None:
    forecast = predicted("bridge", BRIDGE, profile(), costs())
    assert forecast.log_ratio is None
    assert list(prediction_lines([forecast], 100))[-1].endswith(
        "there is no unit cost for container / bare / bridge"
    )


def test_costs_without_a_standard_error_predict_nothing() -> None:
    known = costs(cost("sut-cpu", 4.0, se=None), cost("time", 1.0, load_="alone"))
    forecast = predicted("bridge", BRIDGE, profile(), known)
    assert forecast.log_ratio is None
    assert forecast.why_none == "the unit costs of container / bare / bridge have fewer than 3 blocks"


def test_a_workload_that_does_not_tell_its_requests_has_no_profile() -> None:
    unreported = synthetic.changed(run(), lambda tree: tree["measurement"].pop("queries_per_s"))
    assert profile_of([unreported]) is None


def test_rates_that_change_have_no_profile_and_one_rate_has_one() -> None:
    def climbing(tree: dict[str, Any]) -> None:
        tree["settings"]["workload"]["stages"] = [{"seconds": 1, "rate": 1000.0}]

    assert profile_of([synthetic.changed(run(rate=1000.0), climbing)]) is None
    assert profile(rate=1000.0).flying is None


def test_costs_are_what_a_path_takes_more_than_bare_in_the_same_block(study: Study) -> None:
    runs = [
        run(block, arm, per_s=10_000.0, machine=machine + drift, threads=16)
        for block, drift in ((1, 0.0), (2, 0.5), (3, 1.0))
        for arm, machine in (("bare-busy", 4.0), ("bridge-busy", 5.0 + 0.01 * block))
    ]
    found = {
        (each.network, each.load, each.quantity): each
        for each in unit_costs(study, runs)
        if each.deployment == "container" or each.network == "host"
    }
    bare = found["host", "busy", "machine-cpu"]
    assert bare.us == pytest.approx(1e6 * 4.5 / 40_000)
    more = found["bridge", "busy", "machine-cpu"]
    assert more.us == pytest.approx(1e6 * 1.02 / 40_000)
    assert more.n == 3
    assert more.low is not None
    assert more.low < more.us < (more.high or 0.0)
    assert ("bridge", "alone", "time") not in found


def test_a_failed_run_is_no_cost(study: Study) -> None:
    assert unit_costs(study, [synthetic.record(1, "bare-busy", None)]) == ()


def test_costs_of_a_kib_come_from_large_replies(study: Study) -> None:
    arms = (("bare-busy", 4.0), ("bare-large", 12.0))
    runs = [run(block, arm, machine=machine) for block in (1, 2, 3) for arm, machine in arms]
    (kib,) = [each for each in unit_costs(study, runs) if each.per_kib and each.quantity == "machine-cpu"]
    assert kib.us == pytest.approx(1e6 * 8.0 / 40_000 / ((16384 - 100) / 1024), rel=1e-6)


def test_each_arm_of_a_store_stands_beside_what_was_measured(study: Study) -> None:
    runs = [
        run(block, arm, per_s=per_s, threads=64)
        for block in (1, 2)
        for arm, per_s in (("bare-busy", 10_000.0), ("bridge-busy", 8_000.0))
    ]
    known = costs(cost("sut-cpu", 20.0), cost("time", 1.0, load_="alone"))
    by_arm = {each.arm: each for each in predictions(study, runs, known)}
    assert by_arm["bridge-busy"].measured == pytest.approx(math.log(0.8))
    assert by_arm["bridge-busy"].log_ratio == pytest.approx(math.log(100 / 120))
    assert by_arm["bridge-alone"].why_none == "its baseline bare-alone has no good run"
    shown = "\n".join(prediction_lines(list(by_arm.values()), 100))
    assert "-16.7 %" in shown
    assert "measured -20.0 %" in shown


def test_a_baseline_that_unit_costs_do_not_apply_to_is_named_by_what_differs() -> None:
    baseline = Setup(deployment="bare", client="bare", network="wire")
    assert _not_plain(baseline) == "its baseline is reached over the network wire, not at 127.0.0.1"
    assert _not_plain(baseline.model_copy(update={"deployment": "vm"})) == "its baseline is not bare"


@pytest.mark.parametrize("arm", ["bridge", "an-arm-whose-name-takes-more-than-half-of-the-line"])
def test_a_reason_is_told_to_its_end_however_narrow_the_terminal(arm: str) -> None:
    why = "no bare run, in a closed loop or at one rate, shows how many requests an operation sends"
    lines = list(prediction_lines([Prediction(arm, why_none=why)], 80))[2:]
    assert " ".join(" ".join(lines).split()) == f"{arm} no prediction: {why}"
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80


def test_pipelined_requests_share_as_many_round_trips_as_packets() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["settings"]["workload"] |= {"pipeline": 8}

    alone = run(requests=1.0)
    pipelined = synthetic.changed(alone, change)
    operations = measured(alone).done
    sent = Sent(payload_bytes=100.0 * operations, packets=0.25 * operations)
    assert profile_of([pipelined]) is None
    for one, requests in ((pipelined, 1 / 8), (alone, 1.0)):
        of = profile_of([one], lambda _: sent)
        assert of is not None
        assert of.requests == pytest.approx(requests)


def test_pipelined_requests_without_a_trace_are_the_reason_that_is_given(study: Study) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["settings"]["workload"] |= {"pipeline": 8}

    bare = synthetic.changed(run(), change)
    by_arm = {each.arm: each for each in predictions(study, [bare], costs(cost("sut-cpu", 20.0)))}
    assert (
        by_arm["bridge-busy"].why_none == "its requests are pipelined, and no trace shows how many share a packet"
    )


def test_cassandra_stress_sends_one_request_an_operation() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["settings"] = {"workload": {"threads": 150}, "workload_name": "cassandra-stress"}

    of = profile_of([synthetic.changed(run(requests=0.0), change)])
    assert of is not None
    assert (of.requests, of.flying) == (1.0, 150.0)


def test_costs_are_shown_a_path_a_line_within_80_columns() -> None:
    known = cost("machine-cpu", 3.04, se=0.5).model_copy(update={"low": 1.3, "high": 4.76})
    shown = render(costs(known), width=80)
    assert "2 \N{MULTIPLICATION SIGN} a CPU, 16 GiB, Linux 6.18, docker 20.10" in shown
    line, bar = [line for line in shown.splitlines() if line.startswith("bridge")]
    assert line.split() == ["bridge", "3.0", "\N{PLUS-MINUS SIGN}1.7", *["\N{EM DASH}"] * 4]
    assert bar.startswith("bridge  │███")
    assert bar.endswith("█├───────────────────●───────────────────┤")
    assert max(map(len, shown.splitlines())) <= 80


def test_a_bar_stands_beside_its_figures_where_that_is_not_too_wide() -> None:
    known = cost("machine-cpu", 3.04, se=0.5).model_copy(update={"low": 1.3, "high": 4.76})
    shown = render(costs(known, cost("time", 5.0, load_="alone")), width=120, marks=LETTERS)
    (line,) = [line for line in shown.splitlines() if line.startswith("bridge")]
    assert re.search(r"5\.0 +\N{EM DASH}  \|=+\[-+o-+\]$", line)
    assert "bars: from zero to the CPU time; [-o-] its 95 % interval" in shown
    assert max(map(len, shown.splitlines())) <= 120
    without = render(costs(cost("time", 5.0, load_="alone")), width=80)
    assert "bridge" in without


def test_costs_are_kept_by_machine_and_read_again(tmp_path: Path) -> None:
    layout, known = Layout(tmp_path), costs(cost("time", 1.0))
    assert read_costs(layout, IDENTITY) is None
    keep(layout, known)
    assert read_costs(layout, IDENTITY) == known
    assert read_costs(layout, IDENTITY.model_copy(update={"kernel": "6.19"})) is None
    (costs_dir(layout, IDENTITY) / "costs.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        read_costs(layout, IDENTITY)


def test_what_other_programs_use_of_the_machine_makes_no_overhead_smaller() -> None:
    # Server and client take 100 µs of CPU, other programs as much again, and all of it is in use: 100 / 150.
    of = profile(per_s=10_000.0, sut=2.0, client=2.0, machine=8.0, threads=64)
    forecast = predicted("bridge", BRIDGE, of, costs(cost("machine-cpu", 50.0), cost("time", 1.0, load_="alone")))
    assert forecast.log_ratio == pytest.approx(math.log(100 / 150))


def test_a_path_that_costs_nothing_takes_nothing_however_long_a_phase_was_metered() -> None:
    def longer(tree: dict[str, Any]) -> None:
        tree["usage"]["wall_s"] = 4.4

    of = profile_of([synthetic.changed(run(machine=8.8, sut=4.4, client=4.4), longer)])
    assert of is not None
    known = costs(cost("machine-cpu", 0.0), cost("sut-cpu", 0.0), cost("time", 0.0, load_="alone"))
    assert predicted("bridge", BRIDGE, of, known).log_ratio == pytest.approx(0.0)
