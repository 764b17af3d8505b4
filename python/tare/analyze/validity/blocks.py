"""Rules on the assumptions of a t interval: enough blocks, independent, and none that dominates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import stdtrit

from tare.analyze.statistics.series import lag1
from tare.analyze.validity.evidence import Alarm, Evidence, share, slope_within
from tare.plural import counted
from tare.protocols.stopping import Rule
from tare.record.run_record import RunRecord

FEWEST = 8
"""Fewest blocks. In simulations, stopping at a width after 3 blocks covers 90 % instead of 95 %, and after 8 blocks
95 % (docs/concepts/validity.md); with fewer blocks, the other rules can detect next to nothing."""
QUARTER = 0.25
ORDER = 0.01
"""Largest effect from the first position to the last: half of the target width."""
_CHANCE = 0.01


def few_blocks(evidence: Evidence) -> Iterator[Alarm]:
    """Fewer than 8 blocks have good runs of both arm and baseline; an arm without a good run is for `errors`."""
    for arm in (arm for arm in evidence.arms if arm != evidence.study.baseline_of(arm)):
        ratios = evidence.log_ratios.get(arm, {})
        if len(ratios) < FEWEST:
            yield Alarm(
                "few-blocks",
                arm,
                f"{counted(len(ratios), 'block')}; with fewer than {FEWEST} an interval is reliable only if noise "
                "is normal",
                (),
                _more_blocks(evidence),
            )


def _more_blocks(evidence: Evidence) -> str:
    """Advice on how to get more blocks. Only a target's alpha accounts for looks: see the rule `extended`."""
    if evidence.study.imported is not None:
        return "the source has no more; treat the interval with caution"
    if Rule.of(evidence.study.protocol).target is None:
        return (
            f"run the study again with {FEWEST} blocks or more; --blocks would add some to this one, but without a "
            "target its intervals do not account for a second look"
        )
    return f"raise protocol.blocks and max_minutes to fit {FEWEST} blocks, and resume with the same store"


def autocorrelation(evidence: Evidence) -> Iterator[Alarm]:
    """The log ratio of a block resembles that of the block before: lag-1 correlation above 2.33 / √n, for n >= 8.

    One-sided 1 % for independent values (Bartlett 1946). Only positive correlation makes an interval too narrow.
    """
    for arm, ratios in evidence.log_ratios.items():
        n, correlation = len(ratios), lag1([ratios[block] for block in sorted(ratios)])
        if correlation is not None and correlation > 2.33 / math.sqrt(n):
            yield Alarm(
                "autocorrelation",
                arm,
                f"the correlation of neighbouring blocks is {correlation:.2f}, "
                f"so {n} blocks contain less information than their number suggests",
                _runs(evidence, arm, ratios),
                "something drifts: check the blocks in the report and the host; run more blocks",
            )


def dominating_block(evidence: Evidence) -> Iterator[Alarm]:
    """One block has over a quarter of the variance, and more than the largest of n normal values would have.

    The share (d_i - mean)² / sum is G² / (n - 1) with Grubbs's G. Its 1 % point exceeds a quarter for n below 50
    (0.74 at n = 8), where a quarter would raise an alarm in nearly every clean study. Grubbs, Technometrics 11
    (1969).
    """
    for arm, ratios in evidence.log_ratios.items():
        n = len(ratios)
        if n < FEWEST:
            continue
        blocks = sorted(ratios)
        mean = float(np.mean(list(ratios.values())))
        squares = np.square([ratios[block] - mean for block in blocks])
        if squares.sum() < 1e-20:
            continue
        shares = squares / squares.sum()
        most = int(np.argmax(shares))
        if shares[most] > max(QUARTER, grubbs_share(n)):
            only = {blocks[most]: ratios[blocks[most]]}
            yield Alarm(
                "dominating-block",
                arm,
                f"block {blocks[most]} alone makes {share(float(shares[most]))} of the variance over {n} blocks",
                _runs(evidence, arm, only),
                "find out what happened then, and run more blocks; do not drop this one, which would bias the "
                "result",
            )


def grubbs_share(n: int) -> float:
    """Share of variance that the largest of `n` normal values exceeds once in a hundred studies."""
    t = float(stdtrit(n - 2, 1 - _CHANCE / (2 * n)))
    grubbs = (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))
    return grubbs * grubbs / (n - 1)


def order_effect(evidence: Evidence) -> Iterator[Alarm]:
    """Throughput depends on the position in the block, whatever the arm.

    By `slope_within` on the position. Alarm: t of 99 %, and more than `ORDER` from first to last position.
    """
    slope = slope_within(evidence, evidence.columns.of(_position))
    if slope is None or not slope.real:
        return
    whole = slope.over(len(evidence.arms) - 1)
    if abs(whole) > ORDER:
        way = "faster" if whole > 0 else "slower"
        yield Alarm(
            "order-effect",
            None,
            f"the last run of a block is {share(abs(whole))} {way} than the first, whatever its arm",
            (),
            "let the machine rest between runs (workload.cooldown_s); look for leftover processes or dirty pages",
        )


def _position(run: RunRecord) -> float:
    return float(run.position)


def _runs(evidence: Evidence, arm: str, ratios: Mapping[int, float]) -> tuple[str, ...]:
    places = [(block, name) for block in sorted(ratios) for name in (evidence.study.baseline_of(arm), arm)]
    return tuple(evidence.runs.good[place].run_id for place in places)
