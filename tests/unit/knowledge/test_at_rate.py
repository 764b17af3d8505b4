"""An open loop at a rate, against networks whose answer is known and against a simulated one."""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections import deque
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.knowledge.test_prediction import BRIDGE, cost, costs, run

from tare.analyze.validity.completeness import SHORT
from tare.knowledge.claim import Setup
from tare.knowledge.predictions.measured import Kept
from tare.knowledge.predictions.model_error import CPU, LATENCY
from tare.knowledge.predictions.prediction import Prediction, predicted, predictions
from tare.knowledge.predictions.profile import Demand, Profile, Station, kept_rate
from tare.knowledge.predictions.queueing import filled, sojourn
from tare.knowledge.unit_costs import UnitCost, UnitCosts
from tare.record.run_record import RunRecord
from tare.study.catalogue import find_study
from tare.study.reading.load import load
from tare.study.registry import installed

LOOPBACK = Setup(deployment="container", client="bare", network="published-loopback", storage="bind")


def at(per_s: float, *, requests: float = 1.0, sut: float, client: float, latency: float, room: int = 2) -> Profile:
    """Of a machine that does nothing else; µs an operation, server and client on a CPU each."""
    stations: dict[Station, Demand] = {
        "sut": Demand(sut, 1.0, per_s * sut / 1e6),
        "client": Demand(client, 1.0, per_s * client / 1e6),
        "machine": Demand(sut + client, room, per_s * (sut + client) / 1e6 / room),
    }
    return Profile(requests, per_s, None, stations, 3, cpu_us=sut, latency_us=latency)


def of_path(*each: UnitCost, setup: Setup = BRIDGE) -> UnitCosts:
    return costs(*(one.model_copy(update={"network": setup.network}) for one in each))


def ratio(profile: Profile, known: UnitCosts, *, metric: str = LATENCY, setup: Setup = BRIDGE) -> float:
    forecast = predicted("arm", setup, profile, known, metric=metric)
    assert forecast.log_ratio is not None, forecast.why_none
    return math.exp(forecast.log_ratio)


def test_each_request_costs_more_cpu_the_more_often_it_finds_the_server_idle() -> None:
    # Its CPU is in use for half of the time, by 98 µs of the operation and 2 of the path: half of 2, half of 6.
    known = of_path(cost("sut-cpu", 2.0), cost("sut-cpu", 6.0, load_="alone"), cost("time", 0.0, load_="alone"))
    assert ratio(at(5_000.0, sut=98.0, client=1.0, latency=400.0), known, metric=CPU) == pytest.approx(102 / 98)


def test_a_path_pays_with_its_own_queueing_and_lengthens_the_servers() -> None:
    # 60 µs at half of a CPU in use took 120 of the 200 µs; 70 µs with six tenths of it in use take 175.
    of = at(0.5e6 / 60, sut=60.0, client=0.0, latency=200.0)
    known = of_path(cost("sut-cpu", 12.0), cost("time", 12.0, load_="alone"))
    assert ratio(of, known) == pytest.approx((80 + 72 / 0.4) / 200)


def test_at_a_rate_near_nothing_latency_grows_by_the_time_of_each_request_alone() -> None:
    of = at(0.001, requests=3.0, sut=50.0, client=20.0, latency=200.0)
    known = of_path(cost("sut-cpu", 5.0), cost("time", 20.0, load_="alone"))
    assert ratio(of, known) == pytest.approx(260 / 200, rel=1e-6)


def test_a_server_that_is_awake_needs_no_waking() -> None:
    known = of_path(cost("sut-cpu", 0.0), cost("time", 40.0, load_="alone"))
    busy = ratio(at(9_000.0, sut=100.0, client=1.0, latency=2_000.0), known)
    assert busy == pytest.approx((2_000 + 0.1 * 40) / 2_000)


def test_cpu_time_that_no_operation_waits_for_queues_none() -> None:
    # 100 µs at half a CPU in use would take 200 µs, and all of the latency is 50: a quarter of it is waited for.
    # So is a quarter of the queue for the path's 20 µs; those themselves are waited for by a request alone, too.
    of = at(5_000.0, sut=100.0, client=0.0, latency=50.0)
    known = of_path(cost("sut-cpu", 20.0), cost("time", 20.0, load_="alone"))
    assert ratio(of, known) == pytest.approx((100 / 0.4 / 4 + 20 + (20 / 0.4 - 20) / 4) / 50)


def test_a_proxy_runs_where_there_is_room_and_takes_it_from_server_and_client() -> None:
    # Server 0.2 and client 0.1 of a CPU each; 0.5 CPUs of docker-proxy level both at 0.4.
    of = at(10_000.0, sut=20.0, client=10.0, latency=100.0)
    known = of_path(cost("sut-cpu", 50.0), cost("time", 50.0, load_="alone"), setup=LOOPBACK)
    before = 20 / 0.8 + 10 / 0.9
    after = (20 + 10 + 50) / 0.6
    assert ratio(of, known, setup=LOOPBACK) == pytest.approx((100 - before + after) / 100)


def test_a_proxy_on_spare_cpus_leaves_server_and_client_alone() -> None:
    of = at(10_000.0, sut=20.0, client=10.0, latency=100.0, room=12)
    known = of_path(cost("sut-cpu", 50.0), cost("time", 50.0, load_="alone"), setup=LOOPBACK)
    assert ratio(of, known, setup=LOOPBACK) == pytest.approx((100 + 50 / 0.95) / 100)


def test_a_rate_that_a_path_cannot_carry_has_no_latency_and_says_why() -> None:
    of = at(10_000.0, sut=20.0, client=10.0, latency=100.0)
    known = of_path(cost("sut-cpu", 200.0), cost("time", 200.0, load_="alone"), setup=LOOPBACK)
    forecast = predicted("arm", LOOPBACK, of, known, metric=LATENCY)
    assert forecast.log_ratio is None
    assert forecast.why_none == "its CPUs cannot keep up with this rate, so requests pile up"
    assert predicted("arm", LOOPBACK, of, known, metric=CPU).log_ratio is not None


def behind(number: int, arm: str, share: float) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        tree["measurement"]["details"] = {"delivered_share": share}

    return synthetic.changed(run(number, arm, rate=5_000.0, per_s=5_000.0, sut=2.0), change)


def of_blocks(*shares: float) -> dict[str, Prediction]:
    """What a store tells whose arm served these shares of its rate, a block each; bare kept up."""
    study = load(find_study("unit-costs"), installed(), "quick")
    known = of_path(cost("sut-cpu", 5.0), cost("time", 20.0, load_="alone"))
    runs = [behind(block, "bare-busy", 1.0) for block in range(1, len(shares) + 1)]
    runs += [behind(block, "bridge-busy", share) for block, share in enumerate(shares, 1)]
    return {each.metric: each for each in predictions(study, runs, known) if each.arm == "bridge-busy"}


def test_an_arm_that_saturates_in_most_blocks_is_not_judged_by_its_best_ones() -> None:
    made = of_blocks(0.6, 0.7, 0.98, 0.6, 0.5, 1.0, 1.0, 1.0)
    latency = made[LATENCY]
    assert (latency.measured, latency.measured_se) == (None, None)
    assert latency.kept is not None
    assert latency.kept == Kept(blocks=8, behind=5, dropped=5)
    assert latency.kept.fell_behind is True
    assert latency.falls_behind is False


def test_cpu_time_of_an_operation_counts_in_blocks_that_fell_behind() -> None:
    assert of_blocks(0.6, 0.6, 0.6)[CPU].measured_se is not None


def test_one_block_behind_is_left_out_and_counted() -> None:
    latency = of_blocks(1.0, 0.5, 1.0, 1.0)[LATENCY]
    assert latency.measured_se is not None
    assert latency.kept is not None
    assert latency.kept == Kept(blocks=4, behind=1, dropped=1)
    assert latency.kept.fell_behind is False


def test_too_few_blocks_do_not_tell_whether_an_arm_falls_behind() -> None:
    kept = of_blocks(0.5, 0.5)[LATENCY].kept
    assert kept is not None
    assert kept.fell_behind is None


def test_falling_behind_has_the_bound_of_the_rule_under_delivery() -> None:
    assert kept_rate(behind(1, "bare-busy", 1 - SHORT))
    assert not kept_rate(behind(1, "bare-busy", 1 - SHORT - 0.001))


def test_runs_that_fell_behind_their_rate_tell_no_latency() -> None:
    study = load(find_study("unit-costs"), installed(), "quick")
    known = of_path(cost("sut-cpu", 5.0), cost("time", 20.0, load_="alone"))
    kept = [behind(block, "bare-busy", 0.99) for block in (1, 2)]
    late = [behind(1, "bridge-busy", 0.99), behind(2, "bridge-busy", 0.5)]
    made = {each.metric: each for each in predictions(study, [*kept, *late], known) if each.arm == "bridge-busy"}
    assert made[LATENCY].measured is not None
    assert made[LATENCY].measured_se is None
    none = [behind(1, "bare-busy", 0.9), *late]
    (made_none,) = [each for each in predictions(study, none, known) if each.arm == "bridge-busy"]
    assert made_none.why_none == "bare runs did not keep up with the rate"


def test_what_others_use_of_the_machine_makes_queues_longer() -> None:
    of = at(5_000.0, sut=40.0, client=0.0, latency=200.0)
    known = of_path(cost("sut-cpu", 20.0), cost("time", 20.0, load_="alone"))
    machine = Demand(0.0, 2.0, 0.1 + 0.4)
    beside = replace(of, stations={**of.stations, "machine": machine})
    assert ratio(beside, known) > ratio(of, known)
    # Two fifths of each CPU are others': 0.2 and 0.4 and 0.1 of it in use.
    assert ratio(beside, known) == pytest.approx((200 - 40 / 0.4 + 60 / 0.3) / 200)


def beside_others(of: Profile, share: float) -> Profile:
    """Where other programs use a share of each CPU."""
    machine = of.stations["machine"]
    return replace(of, stations={**of.stations, "machine": replace(machine, used=machine.used + share)})


def test_what_others_use_counts_to_what_fills_the_cpus() -> None:
    # A fifth of its CPU for the server and a quarter for the path; with six tenths for others there is no room.
    of = at(5_000.0, sut=40.0, client=0.0, latency=200.0)
    known = of_path(cost("sut-cpu", 50.0), cost("time", 50.0, load_="alone"))
    alone = predicted("arm", BRIDGE, of, known, metric=LATENCY)
    assert (alone.why_none, alone.falls_behind) == (None, False)
    forecast = predicted("arm", BRIDGE, beside_others(of, 0.6), known, metric=LATENCY)
    assert forecast.why_none == "its CPUs cannot keep up with this rate, so requests pile up"
    assert forecast.falls_behind is True


def test_bare_runs_that_kept_up_on_cpus_full_by_this_account_say_nothing_of_falling_behind() -> None:
    of = beside_others(at(5_000.0, sut=100.0, client=0.0, latency=200.0), 0.6)
    known = of_path(cost("sut-cpu", 1.0), cost("time", 1.0, load_="alone"))
    forecast = predicted("arm", BRIDGE, of, known, metric=LATENCY)
    assert forecast.log_ratio is None
    assert (
        forecast.why_none == "its bare runs and other programs filled its CPUs, so its queues cannot be predicted"
    )
    assert forecast.falls_behind is None


def test_a_rate_that_the_cpus_carry_only_at_the_mean_unit_costs_has_no_interval_of_latency() -> None:
    # 0.45 and 0.5 of the CPU; with costs a standard error higher, 0.45 and 0.6.
    of = at(10_000.0, sut=45.0, client=1.0, latency=400.0)
    known = of_path(cost("sut-cpu", 50.0, se=10.0), cost("time", 50.0, load_="alone"))
    forecast = predicted("arm", BRIDGE, of, known, metric=LATENCY)
    assert forecast.log_ratio is None
    assert forecast.why_none is not None
    assert "may not keep up" in forecast.why_none
    assert forecast.falls_behind is False


def test_a_proxy_needs_no_waking_as_often_as_its_cpus_are_at_work() -> None:
    # Both CPUs are in use for 0.4. Its own share of them, 0.25, was tried against measurements and is further off.
    of = at(10_000.0, sut=20.0, client=10.0, latency=100.0)
    known = of_path(
        cost("sut-cpu", 50.0), cost("sut-cpu", 100.0, load_="alone"), cost("time", 50.0, load_="alone"),
        setup=LOOPBACK,
    )  # fmt: skip
    assert ratio(of, known, metric=CPU, setup=LOOPBACK) == pytest.approx((20 + 0.4 * 50 + 0.6 * 100) / 20)


def test_a_server_on_four_cpus_queues_like_four_servers_of_one_queue() -> None:
    # M/M/4 at 0.5 and 0.7 of its CPUs takes 1.08696 and 1.35721 times the demand; one CPU would, 2 and 3.33 times.
    of = replace(
        at(5_000.0, sut=400.0, client=0.0, latency=1_000.0),
        stations={
            "sut": Demand(400.0, 4.0, 0.5),
            "client": Demand(0.0, 1.0, 0.0),
            "machine": Demand(400, 12, 2 / 12),
        },
    )
    known = of_path(cost("sut-cpu", 160.0), cost("time", 160.0, load_="alone"))
    added = 400 * (1.35721 - 1.08696) + 160 * 1.35721
    assert ratio(of, known) == pytest.approx((1_000 + added) / 1_000, rel=1e-4)


def test_lots_fill_from_the_emptiest() -> None:
    assert filled([(1.0, 0.2), (1.0, 0.1)], 0.0) == pytest.approx(0.1)
    assert filled([(1.0, 0.2), (1.0, 0.1)], 0.05) == pytest.approx(0.15)
    assert filled([(1.0, 0.2), (1.0, 0.1)], 0.5) == pytest.approx(0.4)
    assert filled([(2.0, 0.0), (1.0, 0.9)], 3.0) == pytest.approx(1.3)


def test_a_queue_has_an_end() -> None:
    assert sojourn(2.0, 0.5) == pytest.approx(4.0)
    assert sojourn(2.0, 1.5) == pytest.approx(100.0)


def test_several_servers_of_one_queue_have_erlangs_answers() -> None:
    assert sojourn(1.0, 0.6, 2.0) == pytest.approx(1 / (1 - 0.6**2))
    assert sojourn(1.0, 0.7, 4.0) == pytest.approx(1.3572, abs=1e-4)
    assert sojourn(1.0, 0.7, 1.9) == sojourn(1.0, 0.7, 0.5) == sojourn(1.0, 0.7)
    assert sojourn(1.0, 0.0, 4.0) == 1.0


class Simulated:
    """Operations at a rate; each request visits each of some CPUs in turn, first come, first served."""

    def __init__(self, per_s: float, requests: int, means_us: tuple[float, ...], seed: int) -> None:
        self.draw = random.Random(seed)
        self.means_us = means_us
        self.waiting: list[deque[tuple[int, int]]] = [deque() for _ in means_us]
        self.began = list(accumulate(self.draw.expovariate(per_s / 1e6) for _ in range(12_000 // requests)))
        self.events = [(began, -1, number, requests - 1) for number, began in enumerate(self.began)]

    def join(self, now: float, station: int, number: int, left: int) -> None:
        self.waiting[station].append((number, left))
        if len(self.waiting[station]) == 1:
            self.serve(now, station)

    def serve(self, now: float, station: int) -> None:
        ends = now + self.draw.expovariate(1 / self.means_us[station])
        heapq.heappush(self.events, (ends, station, *self.waiting[station][0]))

    def mean_us(self) -> float:
        """Mean latency, the first tenth left out."""
        taken: list[float] = []
        while self.events:
            now, station, number, left = heapq.heappop(self.events)
            if station >= 0:
                self.waiting[station].popleft()
                if self.waiting[station]:
                    self.serve(now, station)
            if station + 1 < len(self.means_us):
                self.join(now, station + 1, number, left)
            elif left:
                self.join(now, 0, number, left - 1)
            elif number >= len(self.began) // 10:
                taken.append(now - self.began[number])
        return sum(taken) / len(taken)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("requests", [1, 8])
def test_a_simulated_server_behind_a_path_is_as_slow_as_predicted(share: float, requests: int) -> None:
    """Client 10 and server 20 µs a request; a path adds 15 at the server, which is in use for `share` then."""
    per_s = share * 1e6 / 35 / requests
    before, after = (
        statistics.fmean(Simulated(per_s, requests, means, seed).mean_us() for seed in range(4))
        for means in ((10.0, 20.0), (10.0, 35.0))
    )
    of = at(per_s, requests=requests, sut=20.0 * requests, client=10.0 * requests, latency=before)
    known = of_path(cost("sut-cpu", 15.0), cost("time", 15.0, load_="alone"))
    assert ratio(of, known) == pytest.approx(after / before, rel=0.08)
