"""What surrounded the runs, how to repeat them and how to cite them; each format writes their bodies itself."""

from __future__ import annotations

from collections.abc import Iterator

from tare.report.content import Report
from tare.report.section import PAGES, Section


def parity(report: Report) -> Iterator[Section]:
    """Yield what was in force in each arm."""
    closed = report.study.imported is None
    yield Section("parity", "Were the arms alike?", closed=closed, formats=PAGES)


def environment(report: Report) -> Iterator[Section]:
    """Yield images, server variables, host and engine; nothing is known of runs that others made."""
    if report.study.imported is None:
        yield Section("environment", "Environment", formats=PAGES)


def again(report: Report) -> Iterator[Section]:
    """Yield the command that repeats the study."""
    del report
    yield Section("again", "Run it again", formats=PAGES)


def cite(report: Report) -> Iterator[Section]:
    """Yield the citation."""
    del report
    yield Section("cite", "Cite it", formats=PAGES)
