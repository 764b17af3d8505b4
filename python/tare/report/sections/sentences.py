"""Sections of sentences: verdicts, notes, validity, deviations, failures."""

from __future__ import annotations

from collections.abc import Iterator

from tare.report.content import Report
from tare.report.plain import plain
from tare.report.section import PAGE, PAGES, TEXTS, Section
from tare.report.words.notes import LONGEST, failure_text, failures, warnings
from tare.report.words.verdicts import method
from tare.report.words.verdicts import verdicts as lines

_NOTE = 600
_CALIBRATION = 1200


def verdicts(report: Report) -> Iterator[Section]:
    """Yield the verdicts, if the study declares margins."""
    if items := lines(report.analysis):
        how = method(report.analysis)
        note = () if how is None else (how,)
        yield Section("verdicts", "Verdicts against the study's margins", note=note, items=items, under=True)


def notes(report: Report) -> Iterator[Section]:
    """Yield what is to be known about the tables, in texts with the first failed attempts."""
    said = tuple(plain(note, _NOTE) for note in (*report.notes, *report.legend, *report.notices))
    for items, formats in (((*failures(report.analysis), *said), TEXTS), (said, PAGE)):
        if items:
            yield Section("notes", "Notes", items=items, under=True, formats=formats)


def validity(report: Report) -> Iterator[Section]:
    """Yield what calibration showed of the machine, and which validity rules are broken."""
    alarms = tuple(plain(warning, LONGEST) for warning in warnings(report.analysis.alarms))
    behind = (
        plain(f"Behind {rule}: {met.brief}", LONGEST) for rule, traps in report.behind.items() for met in traps
    )
    items = (*alarms, *behind)
    broken = (
        "Broken validity rules: reasons to doubt the figures, which are shown unchanged."
        if items
        else "No validity rule is broken, as far as the runs recorded what the rules need."
    )
    quoted = () if report.calibration is None else (plain(report.calibration, _CALIBRATION),)
    yield Section("validity", "Can the runs be believed?", lead=(*quoted, broken), items=items)


def traps(report: Report) -> Iterator[Section]:
    """Yield what sets arms apart from their baselines by its name, with its remedy."""
    if report.traps:
        lead = ("Most runs of these arms meet a known trap that most runs of their baseline do not.",)
        items = tuple(plain(each.sentence, LONGEST) for each in report.traps)
        yield Section("traps", "Traps that set arms apart", lead=lead, items=items, under=True)


def published(report: Report) -> Iterator[Section]:
    """Yield the published study, and how this one deviates from it."""
    study = report.study
    if study.source or study.deviations:
        items = tuple(plain(each, LONGEST) for each in study.deviations)
        note = () if items else ("No deviation is stated.",)
        title = "The published study, and how this one deviates"
        yield Section("published", title, note=note, items=items, formats=PAGES)


def failed(report: Report) -> Iterator[Section]:
    """Yield every failed attempt; texts name the first of them in their notes."""
    if report.analysis.failures:
        items = tuple(map(failure_text, report.analysis.failures))
        lead = ("A failed run never counts as a slow one. Left out:",)
        yield Section("failures", "Failed runs", lead=lead, items=items, formats=PAGE)
