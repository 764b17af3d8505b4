"""The report as one HTML file that needs no network: it contains style and charts, and no script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.analyze.timelines import Timelines
from tare.analyze.timelines.marks import Mark
from tare.analyze.timelines.runs import RunOverlay
from tare.report import figures
from tare.report.charts.blocks import blocks_a_point
from tare.report.charts.overheads import too_many_blocks
from tare.report.charts.shift import MOST_ROWS
from tare.report.charts.views import has_real
from tare.report.content import Report
from tare.report.drawings import drawings, pointed
from tare.report.explain.section import explained
from tare.report.known import compared, compared_by_operation, known, known_by_operation, published_in
from tare.report.plain import plain, plain_lines
from tare.report.rows.bottleneck import LIMIT_READING, LIMIT_TITLE, limit_columns, limits_rows
from tare.report.rows.climb import CLIMB_TITLE, climb_columns, climb_reading, climb_rows
from tare.report.rows.effects import effect_rows
from tare.report.rows.laid_over import PANELS, hiding, laid_rows, placed
from tare.report.rows.latency_split import (
    LATENCY_SPLIT_COLUMNS,
    LATENCY_SPLIT_READING,
    LATENCY_SPLIT_TITLE,
    latency_split_rows,
)
from tare.report.rows.quantities import COLUMNS, READING, sections
from tare.report.rows.repetitions import REPETITION_COLUMNS, REPETITION_READING, repetitions
from tare.report.rows.shift import shift_rows
from tare.report.rows.sites import SITE_COLUMNS, SITE_READING, site_rows
from tare.report.rows.strata import STRATA_TITLE, strata_of
from tare.report.rows.views import monitors
from tare.report.setting import BY_OTHERS
from tare.report.words.answer import against, interval_kind, unpaired, why_no_interval
from tare.report.words.marks import kinds_of_work
from tare.report.words.notes import LONGEST, failure_text, warnings
from tare.report.words.summary import again, citation, summary
from tare.report.words.verdicts import method, verdicts
from tare.version import __version__

_TICKED = re.compile(r"`([^`]+)`")


@cache
def _environment() -> Environment:
    """Return the environment with its templates, which are compiled once."""
    environment = Environment(
        loader=PackageLoader("tare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plain=plain,
        plain_lines=plain_lines,
        typeset=typeset,
        two_lines=two_lines,
        breakable=breakable,
        ticked=ticked,
        amount=figures.amount,
    )
    return environment


def render(report: Report) -> str:
    """Return the page."""
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    style += hiding(report.laid_over)
    figure = drawings(report)
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            study=report.study,
            analysis=report.analysis,
            setting=report.setting,
            by_others=BY_OTHERS,
            clients=any(arm.placed is None or arm.placed.client is not None for arm in report.study.arms),
            against=against(report.study),
            unpaired=unpaired(report.study),
            interval_kind=interval_kind(report.study),
            many_blocks=too_many_blocks(pointed(report, PRIMARY)),
            blocks_a_point=blocks_a_point(pointed(report, PRIMARY)),
            no_interval=why_no_interval(report.analysis, PRIMARY),
            longest_warning=LONGEST,
            sections=sections(report.study.quantities, report.quantities),
            section_columns=COLUMNS,
            section_reading=READING,
            repetitions=repetitions(report),
            repetition_columns=REPETITION_COLUMNS,
            repetition_reading=REPETITION_READING,
            limits_rows=limits_rows(report),
            limit_title=LIMIT_TITLE,
            limit_columns=limit_columns(report),
            limit_reading=LIMIT_READING,
            climb_rows=climb_rows(report),
            climb_title=CLIMB_TITLE,
            climb_columns=climb_columns(report),
            climb_reading=climb_reading(report),
            latency_split_rows=latency_split_rows(report),
            latency_split_title=LATENCY_SPLIT_TITLE,
            latency_split_columns=LATENCY_SPLIT_COLUMNS,
            latency_split_reading=LATENCY_SPLIT_READING,
            facts=summary(report),
            figure=figure,
            other_metrics=[each for each in report.analysis.metrics if f"metric-{each.name}" in figure],
            shift_rows=shift_rows(report.shifts),
            shift_most=MOST_ROWS,
            site_rows=site_rows(report),
            site_columns=SITE_COLUMNS,
            site_reading=SITE_READING,
            effect_rows=effect_rows(report),
            explained=explained(report),
            laid=laid_rows(report.laid_over),
            laid_panels=PANELS,
            windows_placed=placed(report.laid_over),
            work=_work(report),
            hanging=any(not mark.work for mark in _marks(report.timelines)),
            citation=citation(report),
            again=again(report.study),
            study_file=_as_link(report.study.text),
            strata=strata_of(report),
            strata_title=STRATA_TITLE,
            metrics=known(report.analysis),
            compared=compared(report.analysis),
            by_operation=known_by_operation(report.analysis),
            compared_by_operation=compared_by_operation(report.analysis),
            published_in=partial(published_in, report.analysis),
            PRIMARY=PRIMARY,
            unit=next((arm.unit for arm in report.analysis.arms if arm.unit), "operations"),
            point=figures.point,
            interval=figures.interval,
            percent=figures.percent,
            failure_text=failure_text,
            verdicts=verdicts(report.analysis),
            method=method(report.analysis),
            warnings=warnings(report.analysis.alarms),
            direction_of=direction_of,
            safe_url=safe_url,
            views=None if report.views is None else monitors(report.views),
            views_real=report.views is not None and has_real(report.views),
            style=Markup(style),  # noqa: S704 - the package's own file
            style_digest=_digest(style),
            version=__version__,
        )
    )
    return page + "\n"


def typeset(text: object) -> Markup:
    """Set text with true minus signs; figures keep their units, and intervals both ends, on one line."""
    whole = re.sub(r"(\[[^\[\], ]+,) (?=[^\[\], ]+\])", "\\1\N{NO-BREAK SPACE}", str(text))
    return ticked(figures.unbroken(whole))


def two_lines(text: Markup) -> Markup:
    """Put a figure above its interval."""
    figure, bracket, bounds = text.partition(" [")
    return figure + Markup("<small>[{}</small>").format(bounds) if bracket else text


def breakable(name: str) -> Markup:
    """Allow breaks in a key after its dots and underscores only."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[._])", name))


def ticked(text: str) -> Markup:
    """Turn text between backticks into code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def direction_of(finding: Finding) -> str:
    """Return `worse` or `better` if the interval supports it, else `open`."""
    if not finding.borne_out or finding.estimate.point is None:
        return "open"
    return "better" if (finding.estimate.point > 0) == metric_named(finding.metric).more_is_better else "worse"


def safe_url(url: str) -> str | None:
    """Return the address if a link may lead there; `None` for anything but the web."""
    return url if re.match(r"https?://[^\s<>\"']+\Z", url) else None


def _marks(shown: Timelines | RunOverlay | None) -> list[Mark]:
    return [] if shown is None else [mark for run in shown.runs for mark in run.marks]


def _work(report: Report) -> Mapping[str, Sequence[str]]:
    """Chart → kinds of the servers' own work in the runs that it shows."""
    return {
        "timelines": kinds_of_work(_marks(report.timelines)),
        "laid": kinds_of_work(_marks(report.laid_over)),
    }


def _as_link(text: str) -> str:
    """Return the study file as a data URL that a reader can save."""
    return f"data:application/yaml;base64,{base64.b64encode(text.encode(errors='replace')).decode()}"


def _digest(style: str) -> str:
    """Return the digest for the page's policy, which allows this style and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
