"""Rule for a site that differs from the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from tare.analyze.statistics.sites import stands_out
from tare.analyze.validity.evidence import Alarm, Evidence, share

CHANCE = 0.01
LEAST = 0.01
"""Least difference of effects: half of the target width, as for the order within a block."""


def site_differs(evidence: Evidence) -> Iterator[Alarm]:
    """The mean effect on one of 4 sites or more differs from the others' by over 1 %, with p below 1 %.

    By `stands_out`: sites may differ, so the question is whether one differs more than the others do.
    """
    for arm, ratios in evidence.log_ratios.items():
        by_site = evidence.runs.by_site(ratios.items())
        names = sorted(by_site)
        outlier = stands_out([fmean(by_site[name]) for name in names])
        if outlier is None or outlier[1] >= CHANCE:
            continue
        odd = names[outlier[0]]
        apart = math.expm1(fmean(by_site[odd]) - fmean(fmean(by_site[name]) for name in names if name != odd))
        if abs(apart) > LEAST:
            runs = [run.run_id for run in evidence.good(arm) if run.site == odd]
            yield Alarm(
                "site-differs",
                arm,
                f"the effect on {odd} is {share(abs(apart))} {'above' if apart > 0 else 'below'} that on the other "
                f"{len(names) - 1} sites, which differ less among themselves",
                tuple(runs),
                "compare the facts of that site's hosts with the others'; do not drop its blocks, which would "
                "bias the result",
            )
