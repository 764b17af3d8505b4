"""A publication's own way to its figures, followed on the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tare.analyze.estimate import Estimate
from tare.analyze.metrics import Metric
from tare.analyze.published.relative_change import METHOD, relative_change
from tare.analyze.runs import Runs
from tare.study.model import Study


def by_publication(study: Study, parts: Sequence[Runs], arm: str, metric: Metric) -> Estimate | None:
    """Relative change of averages; of several strata their mean, as Table 3 of grambow-2018 has its last rows.

    `None` where the study names no way of its publication's, or no stratum has runs of both.
    """
    if study.published_by is None:
        return None
    baseline = study.baseline_of(arm)
    each = [relative_change(runs.values_of(arm, metric), runs.values_of(baseline, metric)) for runs in parts]
    known = [one for one in each if one.point is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Estimate(
        point=fmean(one.point for one in known if one.point is not None),
        low=None,
        high=None,
        n=sum(one.n for one in known),
        confidence=known[0].confidence,
        method=METHOD,
        why=f"the mean of {len(known)} relative changes; the method has no interval",
    )
