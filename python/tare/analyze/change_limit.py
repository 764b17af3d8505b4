"""`tare compare --fail-on`: compare each change of an overhead with a limit. Intervals decide, never points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tare.analyze.comparison import Change, Comparison
from tare.analyze.overhead_limit import LimitCheck, Outcome, if_borne, widened


def check_changes(
    comparison: Comparison, metrics: Sequence[str], most: float, unfinished: str | None = None
) -> tuple[LimitCheck, ...]:
    """Check how much worse each arm became from A to B, against the limit `most`, a fraction.

    What `check_limit` does with an overhead, with the ratio of B's overhead to A's: ends are widened by the
    histogram buckets of both studies, and each study's control must bear the decision.
    `unfinished`: why more blocks of a store are to come.
    """
    why = comparison.withheld or unfinished
    checks = (_check(each, most, why) for each in comparison.changes if each.metric in metrics)
    return tuple(if_borne(if_borne(one, comparison.a), comparison.b) for one in checks)


def _check(change: Change, most: float, why: str | None) -> LimitCheck:
    estimate = change.difference.estimate
    low, high = widened(
        estimate, sum(math.log1p(each.resolution) for each in (change.a, change.b) if each.resolution)
    )
    one = LimitCheck(
        arm=change.arm,
        baseline=change.b.baseline,
        metric=change.metric,
        most=most,
        outcome=Outcome.INCONCLUSIVE,
        point=estimate.point,
        low=low,
        high=high,
        n=estimate.n,
        confidence=estimate.confidence,
        resolution=change.b.resolution,
        mark=change.a.mark or change.b.mark,
    )
    if why is not None or one.worse is None:
        return replace(one, why=why or estimate.why)
    return one.decided()
