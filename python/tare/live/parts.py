"""A view as the parts of the page: HTML where it is words, JSON where the browser draws.

Each part has a tag, a digest of its content: two servers that see the same store give the same tags. A viewer who
comes back, after a lost connection or another server's start, is sent what has changed and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tare.live.drawings import grid, series, trace, trail
from tare.live.view import View
from tare.live.wording import WORDING
from tare.report import figures
from tare.report.plain import plain

_TAG_DIGITS = 8


@dataclass(frozen=True)
class Part:
    """`content`: HTML as text, or what is drawn as a JSON tree."""

    name: str
    content: Any
    tag: str


def environment() -> Environment:
    """Templates in which everything that is put into them is escaped."""
    made = Environment(
        loader=PackageLoader("tare.live"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        plain=plain,
        percent=figures.percent,
        amount=figures.amount,
        duration=figures.duration,
        moment=figures.moment,
        second=figures.second,
        size=figures.size,
        figures=figures.on_the_line,
    )
    return made


DRAWN: Mapping[str, Callable[[View], Any]] = {"grid": grid, "trail": trail, "series": series, "trace": trace}
"""Part → what the browser draws of it."""
WORDED = tuple(WORDING)
NAMES = (*WORDED, *DRAWN)
"""All parts, in the order in which an event's id names their tags."""


def parts(view: View, templates: Environment) -> Mapping[str, Part]:
    """All parts of a view."""
    worded = {name: _html(name, view, templates) for name in WORDED}
    drawn = {name: make(view) for name, make in DRAWN.items()}
    return {name: Part(name, content, _tag(content)) for name, content in {**worded, **drawn}.items()}


def _html(name: str, view: View, templates: Environment) -> str:
    return templates.get_template(f"{name}.html.j2").render(view=view, **WORDING[name](view))


def _tag(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_TAG_DIGITS]
