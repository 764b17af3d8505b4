"""How much sites differ: a row for each arm."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze import Finding
from tare.analyze.estimate import OverSites, SiteEffect
from tare.analyze.metrics import PRIMARY
from tare.report.content import Report
from tare.report.figures import interval, percent
from tare.report.plain import plain
from tare.report.section import PAGES, Cell, Column, Section, arm

_READING = (
    "Between sites: standard deviation of the sites' effects, without the noise of their blocks. On another "
    "site: the 95 % interval for the effect on one more site of the same kind; more sites do not narrow it below "
    "the differences between sites."
)


def sites(report: Report) -> Iterator[Section]:
    """Yield the effects on throughput over sites; nothing if all blocks are of one site."""
    rows = tuple(
        _row(finding, finding.over_sites)
        for finding in report.analysis.findings
        if finding.metric == PRIMARY and finding.over_sites is not None
    )
    columns = (
        arm(),
        Column("sites"),
        Column("mean over sites"),
        Column("between sites", lambda between: f"{100 * between:.1f} %"),
        Column("lowest", _site),
        Column("highest", _site),
        Column("on another site"),
    )
    if rows:
        yield Section("sites", "Site by site", columns, rows, (_READING,), formats=PAGES)


def _row(finding: Finding, over: OverSites) -> tuple[object, ...]:
    low, high = (end(over.sites, key=lambda site: site.point) for end in (min, max))
    following = (
        None
        if over.next_low is None or over.next_high is None
        else f"{percent(over.next_low)} to {percent(over.next_high)}"
    )
    mean = Cell(percent(over.estimate.point), interval(over.estimate))
    return (plain(finding.arm, 60), len(over.sites), mean, over.between, low, high, following)


def _site(one: SiteEffect) -> str:
    return f"{percent(one.point)} ({plain(one.site, 40)})"
