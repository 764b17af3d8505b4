"""All sections of a report, in the order in which every format shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tare.report.content import Report
from tare.report.section import Chapter, Format, Section
from tare.report.sections.bottleneck import bottleneck
from tare.report.sections.climb import climb
from tare.report.sections.effects import effects
from tare.report.sections.explained import explained
from tare.report.sections.latency import latency, latency_split
from tare.report.sections.metrics import metrics
from tare.report.sections.overheads import blocks, by_operation, overheads, repetitions
from tare.report.sections.quantities import quantities
from tare.report.sections.runs import runs, timelines
from tare.report.sections.sentences import failed, notes, published, traps, validity, verdicts
from tare.report.sections.sites import sites
from tare.report.sections.strata import strata
from tare.report.sections.surroundings import again, cite, environment, parity
from tare.report.sections.values import values
from tare.report.sections.views import views

SECTIONS: tuple[Callable[[Report], Iterator[Section]], ...] = (
    overheads, verdicts, by_operation, strata, repetitions, notes,
    explained,
    quantities,
    validity, traps, bottleneck, latency_split,
    climb,
    latency,
    metrics,
    blocks,
    sites,
    effects,
    timelines,
    runs,
    values,
    views,
    published,
    failed,
    parity,
    environment,
    again,
    cite,
)  # fmt: skip
"""A line for each chapter: the section that opens it, and those that stand under it."""


def chapters(report: Report, form: Format) -> Iterator[Chapter]:
    """Yield the chapters that a format shows."""
    found: list[Section] = []
    for section in (one for function in SECTIONS for one in function(report) if form in one.formats):
        if found and not section.under:
            yield Chapter(found[0], tuple(found[1:]))
            found = []
        found.append(section)
    if found:
        yield Chapter(found[0], tuple(found[1:]))
