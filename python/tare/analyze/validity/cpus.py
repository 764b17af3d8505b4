"""Rules on the CPUs of arms: different CPU sets, and CPU time that the baseline could not get."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from tare.analyze.columns import Column, Columns, ratio
from tare.analyze.derived import is_proxied, sut_cpu_column, usage_seconds
from tare.analyze.statistics.intervals import term, welch_t
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share, shift
from tare.analyze.validity.load import OTHERS, parts_of_machine
from tare.record.run_record import RunRecord

CORE = 0.02
"""Largest relative difference of throughput between two CPU sets: the target width of an overhead."""
IDLE = 0.05
"""Idle share of machine time below which a program can hardly get more without taking it from another."""
MORE = 1.02
"""Ratio of the proxied arm's CPU time to the baseline's: more than the target width."""
_CHANCE = 0.01
_FEWEST = 4


def core_effect(evidence: Evidence) -> Iterator[Alarm]:
    """The same arm is faster on one CPU set than on another, by over `CORE` and a t interval of 99 %.

    In a duet, by the halves of each run: both arms of a block swap sets at the same time, so the mean of their log
    ratios is the difference between the sets, and changes over time cancel out. Otherwise by an arm's log ratios to
    its baseline in blocks with different CPU sets, if there are any (Welch's t).
    """
    yield from _of_swapped_sets(evidence)
    yield from _of_blocks(evidence)


def _of_swapped_sets(evidence: Evidence) -> Iterator[Alarm]:
    """Yield one alarm for the whole study, as the faster set does not depend on the arm."""
    by_block: dict[int, list[_SwapRates]] = {}
    columns = evidence.columns
    runs = [columns.records[row] for row in evidence.all_rows] if any(columns.trees("duet")) else []
    for run in runs:
        if run.duet is not None and (rates := _swap_rates(run)) is not None:
            by_block.setdefault(run.block, []).append(rates)
    whole = [both for both in by_block.values() if len(both) == 2]
    ratio = shift([fmean(rates.log_ratio for rates in both) for both in whole])
    if ratio is not None and ratio.real and abs(math.expm1(ratio.mean)) > CORE:
        yield Alarm(
            "core-effect",
            None,
            _difference_text(whole[0][0].one, whole[0][0].other, ratio.mean),
            ids([run for run in runs if run.block in by_block]),
            "swapping removes this from the mean, not from the spread: choose equivalent CPU sets (caches, "
            "unshared cores), and check what else runs on the slower one",
        )


@dataclass(frozen=True)
class _SwapRates:
    """Two CPU sets in the order of their names, and the log ratio of a run's throughput on them."""

    one: str
    other: str
    log_ratio: float


def _swap_rates(run: RunRecord) -> _SwapRates | None:
    if (duet := run.duet) is None or (rates := duet.rates) is None:
        return None
    sets = duet.cpus
    if len(sets) != 2 or sets[0] == sets[1] or min(rates) <= 0:
        return None
    by_set = dict(zip(sets, rates, strict=True))
    one, other = sorted(by_set)
    return _SwapRates(one, other, math.log(by_set[one] / by_set[other]))


def _of_blocks(evidence: Evidence) -> Iterator[Alarm]:
    if all(run.parity.sut is None for run in evidence.columns.records):
        return  # no run has its CPUs
    for arm, ratios in evidence.log_ratios.items():
        by_set: dict[str, list[RunRecord]] = {}
        for run in evidence.good(arm):
            cpus = _cpus(run)
            if cpus is not None and run.block in ratios and _swap_rates(run) is None:
                by_set.setdefault(cpus, []).append(run)
        for one, other in combinations(sorted(by_set), 2):
            sides = [[ratios[run.block] for run in by_set[cpus]] for cpus in (one, other)]
            difference = fmean(sides[0]) - fmean(sides[1])
            if min(map(len, sides)) >= _FEWEST and _differ(sides) and abs(math.expm1(difference)) > CORE:
                yield Alarm(
                    "core-effect",
                    arm,
                    _difference_text(one, other, difference),
                    ids([*by_set[one], *by_set[other]]),
                    "set limits.cpus, the same for all blocks",
                )


def _differ(sides: Sequence[Sequence[float]]) -> bool:
    """Whether two sides differ by Welch's t; never without any spread."""
    known = welch_t(map(term, sides))
    return known is not None and known.p_zero(fmean(sides[0]) - fmean(sides[1])) < _CHANCE


def _difference_text(one: str, other: str, difference: float) -> str:
    way = "faster" if difference > 0 else "slower"
    return f"on CPUs {one} throughput is {share(abs(math.expm1(difference)))} {way} than on CPUs {other}"


def _cpus(run: RunRecord) -> str | None:
    return run.parity.sut and (run.parity.sut.cpus_allowed or None)


def proxy_weight(evidence: Evidence) -> Iterator[Alarm]:
    """On a machine without idle time, an arm behind docker-proxy got more CPU time than its baseline could get.

    docker-proxy is in the engine's control group, where it has its own weight (kernel, scheduler/sched-design-CFS,
    group scheduling), while everything else of a run shares the weight of its parent. While CPUs are idle, this
    takes nothing from other programs. If others leave less than `IDLE` idle and use over `OTHERS`, SUT and proxy
    together get a share that the baseline's SUT does not get. Alarm: this holds in most blocks, by the factor
    `MORE`.
    """
    columns = evidence.columns
    proxied, rate = columns.where(is_proxied), _cpu_rate(columns)
    idle, others = (parts_of_machine(columns, kind) for kind in ("idle", "others"))
    for arm in evidence.arms:
        rows, base = evidence.pairs(arm, evidence.study.baseline_of(arm))
        through = proxied[rows] & ~proxied[base]
        rows, base = rows[through], base[through]
        # no idle time on the machine, and more CPU time than the baseline
        taken = (idle[rows] < IDLE) & (others[rows] > OTHERS) & (rate[rows] > MORE * rate[base])
        if len(rows) and 2 * int(taken.sum()) > len(rows):
            rows, base = rows[taken], base[taken]
            yield Alarm(
                "proxy-weight",
                arm,
                f"server and docker-proxy together had {fmean(rate[rows]):.2f} CPUs where the baseline had "
                f"{fmean(rate[base]):.2f}, on a machine without idle time, of which other programs took "
                f"{share(fmean(others[rows]))}: the proxy adds its own CPU weight",
                evidence.ids(rows),
                "stop other work on the machine; until then compare CPU time per operation, because throughput "
                "flatters this arm",
            )


def _cpu_rate(columns: Columns) -> Column:
    """CPUs used by the SUT and, if there is one, by the proxy; unknown if either is unknown."""
    proxy = np.where(columns.where(is_proxied), columns.number("usage", "proxy_cpu_s"), 0.0)
    return ratio(sut_cpu_column(columns) + proxy, usage_seconds(columns))
