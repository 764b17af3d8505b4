"""Colours, fonts and sizes of all charts. Colours are CSS variables, so that charts follow light and dark mode."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import altair as alt
import vl_convert

from tare.report.plain import plain

_SVG = "http://www.w3.org/2000/svg"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SPARE_PX = 20
_NEEDLESS = (
    "class", "style", "aria-hidden", "aria-label", "aria-roledescription", "role", "pointer-events", "version",
    "font-family",
)  # fmt: skip
"""Attributes of the parts of a picture, which is one image to screen readers; the page sets the font."""
_LONG = re.compile(r"-?\d+\.\d{2,}")
_CLASS = re.compile(r"run-\d+\Z")
"""Descriptions that become a class, by which a page can hide the mark."""


FONT = "system-ui, sans-serif"
INK = "var(--ink)"
MUTED = "var(--muted)"
LINE = "var(--line)"
ACCENT = "var(--accent)"
PUBLISHED = "var(--published)"
WORK = "var(--c3)"
"""A server's own work."""
PLAIN = "format(datum.value, ',~f')"
"""A number as people write it; by `format`, an axis would choose the digits itself and write 10 as 1e+1."""


def draw(spec: dict[str, Any], ident: str, label: str) -> str:
    """Return the SVG of a specification. `ident` prefixes its ids; `label` is read out in place of the picture.

    It has no style attributes, so that the page may forbid them, and is scaled by its viewBox, so that it never
    overflows.
    """
    drawn = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(drawn)  # noqa: S314 - made a line above; it has no entities or doctype
    for element in root.iter():
        _dress(element, ident)
    _drop_invisible(root)
    _widen(root)
    root.set("role", "img")
    root.set("aria-label", plain(label, 2000))
    return ElementTree.tostring(root, encoding="unicode")


def _dress(element: ElementTree.Element, ident: str) -> None:
    described = element.get("aria-label", "")
    for name in _NEEDLESS:
        element.attrib.pop(name, None)
    if _CLASS.match(described):
        element.set("class", described)
    if element.get("opacity") == "1":
        del element.attrib["opacity"]
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{ident}-{value}")
        elif "url(#" in value:
            element.set(name, _REFERENCE.sub(rf"url(#{ident}-\1)", value))
        elif name in ("d", "transform", "x", "y", "x1", "x2", "y1", "y2"):
            element.set(name, _LONG.sub(_tenths, value))


def _tenths(number: re.Match[str]) -> str:
    """Round to a tenth of a pixel, which is as fine as eyes can see."""
    return f"{float(number[0]):.1f}".removesuffix(".0").replace("-0.0", "0")


def _widen(root: ElementTree.Element) -> None:
    """Add space on the right: the reader's fonts may be wider than those that Vega measured."""
    left, top, width, height = (float(number) for number in root.attrib["viewBox"].split())
    root.set("viewBox", f"{left:g} {top:g} {width + _SPARE_PX:g} {height:g}")
    root.set("width", f"{width + _SPARE_PX:g}")


def _drop_invisible(parent: ElementTree.Element) -> None:
    """Remove labels that Vega hides because they would overlap, and empty frames."""
    for child in list(parent):
        if child.get("opacity") == "0" or child.get("display") == "none" or child.get("d") in ("", "M0,0h0v0h0Z"):
            parent.remove(child)
        else:
            _drop_invisible(child)


@dataclass(frozen=True)
class Frame:
    """The size of a chart: `wide` for screens and paper, `narrow` for phones. Lengths in pixels."""

    name: str
    page_px: int
    """Width of the page."""
    plot_px: int
    label_px: int
    text_px: int
    ticks: int
    values: bool
    """Whether figures fit beside the plot."""
    columns: int
    """Columns of small multiples."""
    panel_px: int
    """Width of a small multiple."""
    panel_label: int
    """Characters that fit above a small multiple."""

    @property
    def in_one_column(self) -> Frame:
        """The same frame with panels below each other, for names that are too long for panels side by side."""
        return self if self.values else replace(self, columns=1, panel_px=2 * self.panel_px + 60, panel_label=36)


WIDE = Frame(
    "wide",
    page_px=870,
    plot_px=450,
    label_px=170,
    text_px=13,
    ticks=5,
    values=True,
    columns=3,
    panel_px=225,
    panel_label=32,
)
NARROW = Frame(
    "narrow",
    page_px=350,
    plot_px=190,
    label_px=130,
    text_px=12,
    ticks=3,
    values=False,
    columns=2,
    panel_px=90,
    panel_label=18,
)
FRAMES = (WIDE, NARROW)


class Axis(alt.Axis):
    """An axis that copies of a chart share: Altair copies charts at each step, and an axis has ninety settings."""

    def __deepcopy__(self, memo: object = None) -> Axis:
        return self


class Scale(alt.Scale):
    """A scale that copies of a chart share, like `Axis`."""

    def __deepcopy__(self, memo: object = None) -> Scale:
        return self


class _Rows(alt.InlineData):
    """Data that copies of a chart share: Altair copies charts whenever it combines them."""

    def __deepcopy__(self, memo: object) -> _Rows:
        return self


def of_rows(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Make a chart of rows, which it does not change."""
    return alt.Chart(_Rows(values=list(rows)))


def themed(chart: Any, frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, with the theme."""
    # Added to the finished specification, since each `configure_…` copies the whole chart. Vega-Lite's own compiler
    # refuses errors; validating against Altair's schema would take several times as long.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    config = spec.setdefault("config", {})
    config.update(background="transparent", font=FONT, padding=6)
    config.setdefault("view", {})["stroke"] = None
    config["axis"] = {
        "labelColor": MUTED,
        "labelFontSize": frame.text_px,
        "titleColor": MUTED,
        "titleFontSize": frame.text_px,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domain": False,
        "ticks": False,
        "labelPadding": 8,
    }
    return spec


def x_at(px: float) -> alt.XValue:
    """A position across the plot. For a plain `alt.value`, Altair searches all its classes, slower than drawing."""
    return alt.XValue(px)  # type: ignore[no-untyped-call]  # Altair does not type it


def y_at(px: float) -> alt.YValue:
    """A position down the plot; see `x_at`."""
    return alt.YValue(px)  # type: ignore[no-untyped-call]  # Altair does not type it


def x_datum(value: float) -> alt.XDatum:
    """A value on the x axis; see `x_at`."""
    return alt.XDatum(value)


def y_datum(value: float) -> alt.YDatum:
    """A value on the y axis; see `x_at`."""
    return alt.YDatum(value)


def seconds_axis(**settings: Any) -> Axis:
    """An axis of seconds: for a run of 3 s it shows halves, and no second twice."""
    return Axis(title=None, labelExpr=PLAIN, grid=False, **settings)


def value_axis(**settings: Any) -> Axis:
    """An axis of amounts: thousands are `k`, but fractions are not in thousandths."""
    words = "abs(datum.value) < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
    return Axis(title=None, labelExpr=words, **settings)


def percent_axis(title: str, **settings: Any) -> Axis:
    """An axis of fractions with labels in percent."""
    return Axis(
        title=title,
        labelExpr="datum.value == 0 ? '0' : format(datum.value * 100, '+,.3~r') + ' %'",
        labelFlush=False,
        labelOverlap=True,
        **{"labelSeparation": 14, "grid": True, **settings},
    )


def upright_percent_axis(**settings: Any) -> Axis:
    """A vertical percent axis, where labels have space: thinning them as on a horizontal axis could drop zero's."""
    return percent_axis("", labelSeparation=2, **settings)
