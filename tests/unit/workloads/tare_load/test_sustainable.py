"""The climb finds the rate that it is to find: on servers whose sustainable rate is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from tests.unit.workloads.tare_load.cases import CLOSED, TARGET, changed, parameters, parse

from tare.errors import RunFailed
from tare.workloads.tare_load.sustainable import MeasuredRung, SustainableSpec, sustained
from tare.workloads.tare_load.tare_load import TareLoad

SERVED_PER_S, WITHIN_MS = 1000.0, 20.0
TRUTH = SERVED_PER_S - math.log(100) / (WITHIN_MS / 1000)
"""Of an M/M/1 queue: its time in the system is exponential, with mean 1 / (served - arrivals); 770/s here."""
SPEC = SustainableSpec(within_ms=WITHIN_MS, from_per_s=500.0, to_per_s=1200.0, rungs=20)
HOLD_S = 20.0


def climb(
    spec: SustainableSpec, seed: int, served_per_s: float = SERVED_PER_S, stall_at: int | None = None
) -> list[MeasuredRung]:
    """A queue of one server with exponential gaps and work; what waits is carried to the next rung."""
    rng = np.random.default_rng(seed)
    rungs, free_at, began = [], 0.0, 0.0
    for n, rate in enumerate(spec.rates_per_s):
        arrivals = began + np.cumsum(rng.exponential(1 / rate, int(rate * HOLD_S)))
        work = rng.exponential(1 / served_per_s, len(arrivals))
        if n == stall_at:
            work[len(work) // 2] += 1.0
        ahead = np.cumsum(work)  # Lindley: done = sum of work + the latest start of a busy period
        done = ahead + np.maximum.accumulate(np.maximum(arrivals - (ahead - work), free_at))
        free_at = float(done[-1])
        latency_ms = float(np.quantile(done - arrivals, 0.99)) * 1000
        rungs.append(MeasuredRung(rate, len(arrivals) / HOLD_S, latency_ms, missed=0))
        began = float(arrivals[-1])
    return rungs


def found(seeds: Sequence[int], **given: Any) -> list[float]:
    return [sustained(SPEC, climb(SPEC, seed, **given)).rate_per_s for seed in seeds]


def test_the_rate_of_a_queue_is_found_to_a_rung() -> None:
    """Over 200 climbs the mean error is -0.001 and the standard deviation 0.044; a rung is 0.046."""
    errors = [math.log(rate / TRUTH) for rate in found(range(40))]
    assert abs(float(np.mean(errors))) < math.log(SPEC.ratio) / 2
    assert float(np.std(errors)) < 1.5 * math.log(SPEC.ratio)
    assert max(abs(error) for error in errors) < 3 * math.log(SPEC.ratio)


def test_the_ratio_of_two_servers_is_that_of_their_rates() -> None:
    """Served 10 % slower: ln of the found ratio, over pairs, has the truth within its 95 % interval."""
    truth = math.log((0.9 * SERVED_PER_S - math.log(100) / (WITHIN_MS / 1000)) / TRUTH)
    slower = found(range(100, 112), served_per_s=0.9 * SERVED_PER_S)
    ratios = [math.log(slow / fast) for slow, fast in zip(slower, found(range(12)), strict=True)]
    half = 2.2 * float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios))
    assert abs(float(np.mean(ratios)) - truth) < half + math.log(SPEC.ratio) / 4
    assert half < 0.05


def test_one_stall_far_below_does_not_end_the_climb() -> None:
    stalled = sustained(SPEC, climb(SPEC, 1, stall_at=2))
    assert stalled.rate_per_s == pytest.approx(sustained(SPEC, climb(SPEC, 1)).rate_per_s, rel=0.06)
    assert stalled.contradicting >= 1


def rungs(*held: bool) -> list[MeasuredRung]:
    spec = SustainableSpec(within_ms=WITHIN_MS, from_per_s=500.0, to_per_s=1200.0, rungs=len(held))
    return [
        MeasuredRung(rate, rate, 1.0 if holds else 99.0, 0)
        for rate, holds in zip(spec.rates_per_s, held, strict=True)
    ]


def test_the_rate_lies_between_the_rungs_where_the_bound_ceases() -> None:
    given = rungs(True, True, True, False, False)
    rate = sustained(SPEC, given).rate_per_s
    assert rate == pytest.approx(math.sqrt(given[2].rate_per_s * given[3].rate_per_s))


def test_missed_arrivals_and_silence_keep_no_bound() -> None:
    assert MeasuredRung(1.0, 1.0, 1.0, missed=0).holds(WITHIN_MS)
    assert not MeasuredRung(1.0, 1.0, 1.0, missed=1).holds(WITHIN_MS)
    assert not MeasuredRung(1.0, 0.0, None, missed=0).holds(WITHIN_MS)


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ((True,) * 6, "still held at 1200/s"),
        ((False,) * 6, "did not hold at 500/s"),
        ((True, False) * 4, "in no clear order"),
    ],
)
def test_an_edge_that_is_not_there_is_no_rate(held: tuple[bool, ...], why: str) -> None:
    with pytest.raises(RunFailed, match=why):
        sustained(SPEC, rungs(*held))


CLIMB: dict[str, Any] = {"within_ms": 5.0, "from_per_s": 4000.0, "to_per_s": 16000.0, "rungs": 5}


def test_a_climb_is_one_list_of_stages_and_a_window_each() -> None:
    argv = TareLoad().measure(parameters(sustainable=CLIMB, measure_s=10.0), TARGET, "/run/tare").argv
    stages = next(word for word in argv if word.startswith("--stages=")).removeprefix("--stages=").split(",")
    assert [stage.split(":")[0] for stage in stages] == ["2.0"] * 5
    assert float(stages[-1].split(":")[1]) == pytest.approx(16000)
    assert "--window=2.0" in argv
    assert "--spacing=poisson" in argv


def test_a_rung_without_requests_enough_for_its_quantile_is_refused() -> None:
    with pytest.raises(ValidationError, match="p99 takes 1000"):
        parameters(sustainable={**CLIMB, "from_per_s": 100.0}, measure_s=10.0)
    with pytest.raises(ValidationError, match="set twice: by rate and sustainable"):
        parameters(sustainable=CLIMB, rate=5.0, measure_s=10.0)


def test_throughput_is_the_rate_that_was_found(tmp_path: Path) -> None:
    """Windows of a real document, their latencies set: the bound ceases after the second of five rungs."""

    def alter(tree: dict[str, Any]) -> None:
        within = [window for window in tree["windows"] if window["phase"] == "measure"]
        for window, p99_ms in zip(within, (1, 2, 9, 9), strict=True):
            window["latency_ns"]["p99"] = p99_ms * 1_000_000
        last = {**within[-1], "start_s": 2.0, "end_s": 2.5, "right": 0, "missed": 7}
        tree["measure"]["unfinished"] = 386_877  # what waits at the end of a climb is beyond what can be sustained
        tree["windows"].insert(tree["windows"].index(within[-1]) + 1, last)

    measured = parse(
        tmp_path,
        "closed",
        document=changed("closed", alter),
        **{**CLOSED, "sustainable": {**CLIMB, "from_per_s": 40_000.0, "to_per_s": 160_000.0}},
    )
    assert measured.sustained is not None
    assert measured.throughput_per_s == measured.sustained.rate_per_s == pytest.approx(40_000 * 2**0.75)
    assert measured.unit == "sustained operations"
    assert [rung.missed for rung in measured.sustained.rungs] == [0, 0, 0, 0, 7]
    assert measured.latency.p99_ms is None
    assert not measured.windows
