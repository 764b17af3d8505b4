"""A page as somebody without a mouse meets it: Tab by Tab, with what is seen of the focus at each stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

_CONTROLS = "a[href], button, input, summary, select, textarea, [tabindex]:not([tabindex='-1'])"
_HERE = """(controls) => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const box = one.getBoundingClientRect(), style = getComputedStyle(one);
  return {
    at: [...document.querySelectorAll(controls)].indexOf(one),
    what: `${one.tagName} ${one.id || one.getAttribute("aria-label") || one.textContent.trim().slice(0, 40)}`,
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    inSight: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight
      && box.right > 0 && box.left < innerWidth,
    named: Boolean(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim()),
  };
}"""
_REACHABLE = """(controls) => [...document.querySelectorAll(controls)].flatMap((one, at) =>
  one.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && !one.disabled ? [at] : [])"""
_MOST = 1000


@dataclass(frozen=True)
class Stop:
    """Where the focus is. `at`: the control's place in the document. `outline`: width of its ring in pixels."""

    at: int
    what: str
    outline: float
    in_sight: bool
    named: bool


def here(page: Page) -> Stop | None:
    """What has the focus; `None`: nothing has."""
    focus: dict[str, Any] | None = page.evaluate(_HERE, _CONTROLS)
    if focus is None:
        return None
    return Stop(focus["at"], focus["what"], focus["outline"], focus["inSight"], focus["named"])


def stops(page: Page) -> list[Stop]:
    """By Tab from the page's beginning until the focus leaves it or comes round."""
    page.evaluate(
        "() => { const all = document.body; all.tabIndex = -1; all.focus(); all.removeAttribute('tabindex'); }"
    )
    reached: list[Stop] = []
    for _ in range(_MOST):
        page.keyboard.press("Tab")
        stop = here(page)
        if stop is None or (reached and stop.at == reached[0].at):
            return reached
        reached.append(stop)
    raise AssertionError(f"the focus does not leave the page: {reached[-3:]}")


def stops_back(page: Page) -> list[int]:
    """Places in the document by Shift+Tab from the page's last control to its first."""
    *_, last = reachable(page)
    page.evaluate("([controls, at]) => document.querySelectorAll(controls)[at].focus()", [_CONTROLS, last])
    reached = [last]
    while len(reached) < _MOST:
        page.keyboard.press("Shift+Tab")
        stop = here(page)
        if stop is None or stop.at in reached:
            return reached
        reached.append(stop.at)
    raise AssertionError("the focus does not leave the page")


def reachable(page: Page) -> list[int]:
    """Places in the document of all controls that can be seen now."""
    values: list[int] = page.evaluate(_REACHABLE, _CONTROLS)
    return values


def check_stops(page: Page) -> list[Stop]:
    """Every control once, in the document's order, in sight, with a name and a ring around it."""
    wanted, result = reachable(page), stops(page)
    assert [stop.at for stop in result] == wanted, [stop.what for stop in result]
    assert [stop.what for stop in result if stop.outline < 2] == []
    assert [stop.what for stop in result if not stop.in_sight] == []
    assert [stop.what for stop in result if not stop.named] == []
    return result


def unnamed_pictures(page: Page) -> list[str]:
    """Pictures without a text in their place."""
    script = """() => [...document.querySelectorAll("svg, img, canvas, [role=img]")]
      .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
      .filter((one) => !(one.closest("[role=img]")?.getAttribute("aria-label") || "").trim())
      .map((one) => one.outerHTML.slice(0, 120))"""
    lines: list[str] = page.evaluate(script)
    return lines
