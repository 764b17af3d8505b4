"""How much sites differ, as rows of text: a row for each arm."""

from __future__ import annotations

from collections.abc import Sequence

from tare.analyze import Finding
from tare.analyze.estimate import OverSites
from tare.analyze.metrics import PRIMARY
from tare.report.content import Report
from tare.report.figures import NONE, interval, percent
from tare.report.plain import plain

SITE_COLUMNS = ("arm", "sites", "mean over sites", "between sites", "lowest", "highest", "on another site")
SITE_READING = (
    "Between sites: standard deviation of the sites' effects, without the noise of their blocks. On another "
    "site: the 95 % interval for the effect on one more site of the same kind; more sites do not narrow it below "
    "the differences between sites."
)


def site_rows(report: Report) -> Sequence[tuple[str, ...]]:
    """Return the rows for throughput; none if all blocks are of one site."""
    return [
        _row(finding, finding.over_sites)
        for finding in report.analysis.findings
        if finding.metric == PRIMARY and finding.over_sites is not None
    ]


def _row(finding: Finding, over: OverSites) -> tuple[str, ...]:
    low, high = (end(over.sites, key=lambda site: site.point) for end in (min, max))
    estimate = over.estimate
    bounds = interval(estimate)
    following = (
        NONE
        if over.next_low is None or over.next_high is None
        else f"{percent(over.next_low)} to {percent(over.next_high)}"
    )
    return (
        plain(finding.arm, 60),
        str(len(over.sites)),
        percent(estimate.point) if bounds == NONE else f"{percent(estimate.point)} {bounds}",
        f"{100 * over.between:.1f} %",
        f"{percent(low.point)} ({plain(low.site, 40)})",
        f"{percent(high.point)} ({plain(high.site, 40)})",
        following,
    )
