"""The report as one HTML file that needs no network: it contains style and charts, and no script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tare.analyze.metrics import PRIMARY
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
from tare.report.known import published_in
from tare.report.plain import plain, plain_lines
from tare.report.sections.metrics import charted
from tare.report.sections.order import chapters
from tare.report.sections.runs import hiding, picks, placed
from tare.report.setting import BY_OTHERS
from tare.report.words.answer import against, unpaired, why_no_interval
from tare.report.words.marks import kinds_of_work
from tare.report.words.notes import LONGEST
from tare.report.words.summary import again, citation, summary
from tare.study.model import Study
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
    environment.filters.update(plain=plain, plain_lines=plain_lines, typeset=typeset, breakable=breakable)
    environment.globals.update(PRIMARY=PRIMARY, BY_OTHERS=BY_OTHERS, SHIFT_ROWS=MOST_ROWS, longest=LONGEST)
    environment.globals.update(
        {
            function.__name__: function
            for function in (
                again, against, as_link, blocks_a_point, charted, citation, digest, has_clients, has_real,
                kinds_of_work, marks, picks, placed, pointed, published_in, safe_url, summary, too_many_blocks,
                unpaired, why_no_interval,
            )
        }
    )  # fmt: skip
    return environment


def render(report: Report) -> str:
    """Return the page."""
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            study=report.study,
            analysis=report.analysis,
            chapters=tuple(chapters(report, "html")),
            figure=drawings(report),
            style=Markup(style + hiding(report.laid_over)),  # noqa: S704 - the package's own file
            version=__version__,
        )
    )
    return page + "\n"


def typeset(text: object) -> Markup:
    """Set text with true minus signs; figures keep their units, and intervals both ends, on one line."""
    whole = re.sub(r"(\[[^\[\], ]+,) (?=[^\[\], ]+\])", "\\1\N{NO-BREAK SPACE}", str(text))
    return ticked(figures.unbroken(whole))


def breakable(name: str) -> Markup:
    """Allow breaks in a key after its dots and underscores only."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[._])", name))


def ticked(text: str) -> Markup:
    """Turn text between backticks into code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def safe_url(url: str) -> str | None:
    """Return the address if a link may lead there; `None` for anything but the web."""
    return url if re.match(r"https?://[^\s<>\"']+\Z", url) else None


def has_clients(study: Study) -> bool:
    """Whether any arm has a client beside the SUT."""
    return any(arm.placed is None or arm.placed.client is not None for arm in study.arms)


def marks(shown: Timelines | RunOverlay) -> list[Mark]:
    """Return the marks of all runs of a chart."""
    return [mark for run in shown.runs for mark in run.marks]


def as_link(text: str) -> str:
    """Return the study file as a data URL that a reader can save."""
    return f"data:application/yaml;base64,{base64.b64encode(text.encode(errors='replace')).decode()}"


def digest(style: str) -> str:
    """Return the digest for the page's policy, which allows this style and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
