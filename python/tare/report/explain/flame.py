"""A differential flame graph: one SVG file with its own script, which needs no network.

Width shows the time per operation of the arm; colour shows whether that is more (red) or less (blue) than in the
baseline. Frames that only the baseline has are without width; the text of the frames around them names them. After
Gregg, "The flame graph", CACM 59(6), 2016, and his differential flame graphs of 2014.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from xml.sax import saxutils

from tare.analyze.explain.stacks import ArmStacks
from tare.report.figures import amount
from tare.report.plain import plain

WIDTH_PX = 1200
_ROW_PX = 17
_TOP_PX = 64
_LEAST_PX = 0.3
"""Narrower frames are left out: nobody can see or click them."""
_LONGEST_TEXT = 2000
"""Characters of a name; C++ has long ones."""
_FULL_COLOUR = 0.05
"""A change of this share of the total has the full colour."""


@dataclass
class Node:
    """A frame with all its calls, in the arm and in the baseline; microseconds per operation."""

    name: str
    us: float = 0.0
    baseline_us: float = 0.0
    children: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A drawn frame; `depth` from the root."""

    node: Node
    x_px: float
    width_px: float
    depth: int


def tree_of(arm_stacks: ArmStacks) -> Node:
    """Merge both sets of stacks into one tree."""
    root = Node("all")
    for stacks, is_arm in ((arm_stacks.stacks, True), (arm_stacks.baseline_stacks, False)):
        _grow(root, stacks, is_arm=is_arm)
    return root


def _grow(root: Node, stacks: Mapping[str, float], *, is_arm: bool) -> None:
    for stack, used in stacks.items():
        node = root
        for name in ("", *stack.split(";")):
            node = node if not name else node.children.setdefault(name, Node(name))
            if is_arm:
                node.us += used
            else:
                node.baseline_us += used


def boxes(node: Node, x_px: float, px_a_us: float, depth: int = 0) -> Iterator[Box]:
    """Lay out frames, with children ordered by name, so that two graphs of the same program look alike."""
    width = node.us * px_a_us
    if width < _LEAST_PX:
        return
    yield Box(node, x_px, width, depth)
    for name in sorted(node.children):
        child = node.children[name]
        yield from boxes(child, x_px, px_a_us, depth + 1)
        x_px += child.us * px_a_us


def colour(node: Node, whole_us: float, *, compared: bool) -> str:
    """Return red for more and blue for less, by the share of the total; one colour without a baseline."""
    if not compared:
        return "rgb(238,178,98)"
    share = max(-1.0, min(1.0, (node.us - node.baseline_us) / whole_us / _FULL_COLOUR)) if whole_us else 0.0
    pale = round(244 - 150 * abs(share))
    return f"rgb(250,{pale},{pale})" if share >= 0 else f"rgb({pale},{pale},250)"


def render(stacks: ArmStacks) -> str:
    """Return the SVG file."""
    root = tree_of(stacks)
    compared = bool(stacks.baseline_stacks)
    drawn = list(boxes(root, 0.0, WIDTH_PX / root.us if root.us else 0.0))
    deepest = max((box.depth for box in drawn), default=0)
    height = _TOP_PX + (deepest + 1) * _ROW_PX + 8
    against = f" against {stacks.baseline}" if compared else ""
    title = f"{stacks.study}: {stacks.arm}{against}, CPU time of an operation"
    caption = f"{amount(root.us)} µs" + (
        f", {amount(root.baseline_us)} µs in {stacks.baseline}" if compared else ""
    )
    script = files("tare.report.explain").joinpath("flame.js").read_text(encoding="utf-8")
    body = "\n".join(_drawn(box, root.us, deepest, compared=compared) for box in drawn)
    legend = "Width: time in the arm. Red: more than in the baseline; blue: less." if compared else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height}" width="100%" role="img" id="flame">
<title>{escape(title)}</title>
<style>text {{ font: 12px ui-monospace, monospace; pointer-events: none }}
.top {{ font-family: system-ui, sans-serif }}
g.f {{ cursor: pointer }} g.f rect {{ stroke: #fff; stroke-width: .6 }}
g.f.hit rect {{ fill: #c2f }} g.f:hover rect {{ stroke: #000 }}
#search, #reset {{ cursor: pointer; text-decoration: underline; pointer-events: auto }}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text class="top" x="6" y="18" font-weight="bold">{escape(title)}</text>
<text class="top" x="6" y="36">{escape(caption)}. {legend}</text>
<text class="top" x="{WIDTH_PX - 130}" y="18" id="search">search (Ctrl-F)</text>
<text class="top" x="{WIDTH_PX - 130}" y="36" id="reset">whole graph</text>
<text class="top" x="6" y="54" id="told"> </text>
{body}
<script><![CDATA[
{script}]]></script>
</svg>
"""


def escape(text: str) -> str:
    """Make a text safe in XML, also in double quotes; control characters, which XML cannot have, become U+FFFD."""
    return saxutils.escape(plain(text, _LONGEST_TEXT), {'"': "&quot;"})


def _drawn(box: Box, whole_us: float, deepest: int, *, compared: bool) -> str:
    node = box.node
    y = _TOP_PX + (deepest - box.depth) * _ROW_PX
    title = f"{node.name}: {amount(node.us)} µs, {100 * node.us / whole_us:.1f} %"
    if compared:
        title += f"; {node.us - node.baseline_us:+.3g} µs, {amount(node.baseline_us)} µs in the baseline"
    name = escape(node.name)
    letters = int(box.width_px / 7.3)
    label = (
        "" if letters < 3 else escape(node.name if len(node.name) <= letters else f"{node.name[: letters - 1]}…")
    )
    return (
        f'<g class="f" data-x="{box.x_px:.2f}" data-w="{box.width_px:.2f}" data-d="{box.depth}" data-n="{name}" '
        f'data-u="{node.us:.4g}"><title>{escape(title)}</title>'
        f'<rect x="{box.x_px:.2f}" y="{y}" width="{box.width_px:.2f}" height="{_ROW_PX - 1}" '
        f'fill="{colour(node, whole_us, compared=compared)}"/>'
        f'<text x="{box.x_px + 3:.2f}" y="{y + 12}">{label}</text></g>'
    )
