"""What is proved so far, as Markdown tables and as a chart; `docs/guides/calibration.md` holds both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from bench.truth.figures import COMPARISONS, LEAST_COVERED, MOST_FALSE, STUDIES, Proved, Row
from tare.calibrate.pooled import Share
from tare.report.charts.theme import ACCENT, INK, MUTED, WIDE, Axis, Scale, draw, of_rows, themed
from tools.guide_charts import alone

BEGIN, END = "<!-- proved: begin, by make truth-page -->", "<!-- proved: end -->"
NAME = "proved"


def tables(proved: Proved) -> str:
    """Markdown, without a last newline."""
    whole = proved.whole
    goal = f"{100 * MOST_FALSE:g} % at most over {COMPARISONS} comparisons at least"
    own = f"{proved.comparisons} comparisons. False positives of tare's own protocols: {_share(whole.false)}"
    lines = [
        f"{own}; the goal is {goal}: {_false_met(whole.false)}.",
        "",
        *_grid("protocol", proved.protocols),
        f"Coverage of each effect; the goal is {100 * LEAST_COVERED:g} % at least over {STUDIES} studies at least:",
        "",
        "| effect | studies whose interval held the truth | goal |",
        "|---|---|---|",
        *(f"| {row.name} | {_share(row.covered)} | {_covered_met(row.covered)} |" for row in proved.effects),
        "",
    ]
    for title, rows in (("database", proved.databases), ("path", proved.paths), ("machine", proved.machines)):
        lines += _grid(title, rows)
    if proved.torn:
        lines.append(f"{proved.torn} lines of the ledger cannot be read: crashes cut them off.")
    return "\n".join(lines).rstrip()


def within(page: str, proved: Proved) -> str:
    """The page with the tables of now between its two marks. Raises `ValueError` where it lacks them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{begin}\n{tables(proved)}\n{end}{after}"


def _false_met(of: Share) -> str:
    if of.share is None or of.of < COMPARISONS:
        return "not decided yet"
    return "met" if of.share <= MOST_FALSE else "missed"


def _covered_met(of: Share) -> str:
    if of.share is None or of.of < STUDIES:
        return "not decided yet"
    return "met" if of.share >= LEAST_COVERED else "missed"


def _grid(title: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {title} | false positives (nominal 5 %) | coverage (nominal 95 %) |"
    yield "|---|---|---|"
    yield from (f"| {row.name} | {_share(row.false)} | {_share(row.covered)} |" for row in rows)
    yield ""


def _share(of: Share) -> str:
    """`4.2 % [1.1, 10.3], 4 of 96`."""
    if of.share is None or of.low is None or of.high is None:
        return "none judged"
    return f"{100 * of.share:.1f} % [{100 * of.low:.1f}, {100 * of.high:.1f}], {of.count} of {of.of}"


def chart(proved: Proved) -> str:
    """An SVG that stands alone: false positives on the left, coverage on the right, a line a protocol."""
    panels = (
        ("false positives, %", MOST_FALSE, [(row.name, row.false) for row in proved.protocols]),
        ("coverage, %", LEAST_COVERED, [(row.name, row.covered) for row in proved.protocols]),
    )
    names = [row.name for row in proved.protocols]
    drawn = alt.hconcat(*(_panel(title, goal, shares, names) for title, goal, shares in panels), spacing=40)
    return alone(draw(themed(drawn, WIDE), NAME, in_words(proved)))


def _panel(title: str, goal: float, shares: Sequence[tuple[str, Share]], names: Sequence[str]) -> Any:
    rows = [
        {"name": name, "share": 100 * of.share, "low": 100 * of.low, "high": 100 * of.high}
        for name, of in shares
        if of.share is not None and of.low is not None and of.high is not None
    ]
    y = alt.Y("name:N", sort=list(names), scale=alt.Scale(domain=list(names)), axis=Axis(title=None))
    ends = Scale(domain=[0, 100], nice=False)
    lines = (
        of_rows(rows).mark_rule(stroke=MUTED, strokeWidth=2).encode(x=alt.X("low:Q", scale=ends), x2="high:Q", y=y)
    )
    axis = Axis(title=title, tickCount=5)
    points = (
        of_rows(rows)
        .mark_point(filled=True, size=70, color=INK)
        .encode(x=alt.X("share:Q", scale=ends, axis=axis), y=y)
    )
    rule = (
        of_rows([{"goal": 100 * goal}])
        .mark_rule(stroke=ACCENT, strokeDash=[4, 3])
        .encode(x=alt.X("goal:Q", scale=ends))
    )
    return alt.layer(rule, lines, points).properties(width=WIDE.plot_px // 2 + 40, height=26 * len(names) + 20)


def in_words(proved: Proved) -> str:
    """The chart for those who cannot see it."""
    each = "; ".join(
        f"{row.name}: {_share(row.false)} false positives, {_share(row.covered)} covered"
        for row in proved.protocols
    )
    return f"Chart: what is proved so far, with 95 % intervals. {each}."
