"""From a Vega-Lite specification to SVG that can stand in a page beside others."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import vl_convert

from tare.report.plain import plain

_SVG = "http://www.w3.org/2000/svg"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SPARE_PX = 20
_NEEDLESS = (
    "class", "style", "aria-hidden", "aria-label", "aria-roledescription", "role", "pointer-events", "version",
    "font-family",
)  # fmt: skip
"""Of the parts of a picture that is one image to those who cannot see it; the page sets the type."""
_LONG = re.compile(r"-?\d+\.\d{2,}")
_CLASS = re.compile(r"run-\d+\Z")
"""What is described so gets it as its class, by which a page may hide it."""


def draw(spec: dict[str, Any], ident: str, label: str) -> str:
    """SVG of a specification. `ident` goes before each id in it, `label` is read out in place of the picture.

    No style attributes, so that the page may forbid them; scaled by its viewBox, so that it never overflows.
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
    """A tenth of a pixel is as fine as eyes go."""
    return f"{float(number[0]):.1f}".removesuffix(".0").replace("-0.0", "0")


def _widen(root: ElementTree.Element) -> None:
    """Room at the right: the reader's fonts may be wider than those that Vega measured with."""
    left, top, width, height = (float(number) for number in root.attrib["viewBox"].split())
    root.set("viewBox", f"{left:g} {top:g} {width + _SPARE_PX:g} {height:g}")
    root.set("width", f"{width + _SPARE_PX:g}")


def _drop_invisible(parent: ElementTree.Element) -> None:
    """Labels that Vega hides because they would overlap, and empty frames."""
    for child in list(parent):
        if child.get("opacity") == "0" or child.get("display") == "none" or child.get("d") in ("", "M0,0h0v0h0Z"):
            parent.remove(child)
        else:
            _drop_invisible(child)
