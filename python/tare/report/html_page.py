"""The report as one HTML file that asks nothing of any network: style and charts are in it, and no script is."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tare import __version__
from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report import figures
from tare.report.against import against
from tare.report.charts import blocks, overheads
from tare.report.charts import timelines as timelines_chart
from tare.report.charts import views as views_chart
from tare.report.charts.svg import draw
from tare.report.charts.theme import FRAMES
from tare.report.content import Report
from tare.report.known import known
from tare.report.made_of import unpaired
from tare.report.notes import told
from tare.report.plain import plain, plain_lines
from tare.report.quantities import COLUMNS, READING, sections
from tare.report.strata import TITLES, strata_rows
from tare.report.summary import summary
from tare.report.validity import warnings
from tare.report.verdicts import method, verdicts
from tare.report.views_rows import monitors

_LATENCY = "latency_p95"


@dataclass(frozen=True)
class Figure:
    """A chart in every frame, each already SVG."""

    name: str
    drawings: tuple[tuple[str, Markup], ...]
    """(frame's name, SVG)"""


def render(report: Report) -> str:
    """The page."""
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("tare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(plain=plain, plain_lines=plain_lines, typeset=typeset, amount=figures.amount)
    page = environment.get_template("report.html.j2").render(
        report=report,
        study=report.study,
        analysis=report.analysis,
        setting=report.setting,
        clients=any(arm.placed is None or arm.placed.client is not None for arm in report.study.arms),
        against=against(report.study),
        unpaired=unpaired(report.study),
        sections=sections(report.study.quantities, report.quantities),
        section_columns=COLUMNS,
        section_reading=READING,
        facts=summary(report),
        figure=_figures(report),
        strata_titles=TITLES,
        strata_rows=strata_rows(report),
        metrics=known(report.analysis),
        by_operation=[metric for metric in report.analysis.metrics if metric.operation],
        PRIMARY=PRIMARY,
        unit=next((arm.unit for arm in report.analysis.arms if arm.unit), "operations"),
        point=figures.point,
        interval=figures.interval,
        percent=figures.percent,
        told=told,
        verdicts=verdicts(report.analysis),
        method=method(report.analysis),
        warnings=warnings(report.analysis.alarms),
        standing=standing,
        safe_url=safe_url,
        views=None if report.views is None else monitors(report.views),
        style=Markup(style),  # noqa: S704 - the package's own file
        style_digest=_digest(style),
        version=__version__,
    )
    return page + "\n"


def typeset(text: object) -> Markup:
    """Text with true minus signs; figures keep their units, and intervals their ends, on the line."""
    whole = re.sub(r"(\[[^\[\], ]+,) (?=[^\[\], ]+\])", "\\1\N{NO-BREAK SPACE}", str(text))
    return escape(figures.signed(whole).replace(" %", "\N{NO-BREAK SPACE}%"))


def standing(finding: Finding) -> str:
    """`worse`, `better` or `open`, as far as the interval bears it out."""
    if not finding.borne_out or finding.estimate.point is None:
        return "open"
    return "better" if (finding.estimate.point > 0) == metric_named(finding.metric).more_is_better else "worse"


def safe_url(url: str) -> str | None:
    """The address where a link may lead, `None` for anything but the web."""
    return url if re.match(r"https?://[^\s<>\"']+\Z", url) else None


def _figures(report: Report) -> dict[str, Figure]:
    """The charts for which there is anything to draw."""
    throughput, latency = (_pointed(report, metric) for metric in (PRIMARY, _LATENCY))
    drawn = {}
    if throughput:
        drawn["throughput"] = _figure(
            "throughput", partial(overheads.overheads, throughput), overheads.in_words(throughput)
        )
        drawn["blocks"] = _figure("blocks", partial(blocks.blocks, throughput), blocks.in_words(throughput))
    if latency:
        drawn["latency"] = _figure("latency", partial(overheads.overheads, latency), overheads.in_words(latency))
    if report.timelines is not None and report.timelines.runs:
        lines = report.timelines
        drawn["timelines"] = _figure(
            "timelines", partial(timelines_chart.timelines, lines), timelines_chart.in_words(lines)
        )
    if report.views is not None and views_chart.drawable(report.views):
        drawn["views"] = _figure(
            "views", partial(views_chart.views, report.views), views_chart.in_words(report.views)
        )
    return drawn


def _pointed(report: Report, metric: str) -> Sequence[Finding]:
    found = (finding for finding in report.analysis.findings if finding.metric == metric)
    return [finding for finding in found if finding.estimate.point is not None]


def _figure(name: str, specification: partial[dict[str, object]], label: str) -> Figure:
    drawings = [
        (frame.name, Markup(draw(specification(frame), f"{name}-{frame.name}", label)))  # noqa: S704 - made by Vega
        for frame in FRAMES
    ]
    return Figure(name, tuple(drawings))


def _digest(style: str) -> str:
    """What the page's policy allows: this style and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
