"""Where the time goes: a sentence for each arm, and what each cause adds."""

from __future__ import annotations

from collections.abc import Iterator

from tare.report.content import Report
from tare.report.explain.words import LEAST_POINTS, added_points, notes, sentence, total_points
from tare.report.plain import plain
from tare.report.section import PAGES, Column, Section

_READING = (
    "CPU time per operation that each cause adds, in percent of the baseline's. `tare explain STORE ARM` shows "
    "intervals, sides and waiting; with `--format flamegraph`, the stacks."
)


def explained(report: Report) -> Iterator[Section]:
    """Yield a sentence for each arm, and on pages the causes by arm; nothing if no run sampled stacks."""
    explanation = report.explanation
    if explanation is None:
        return
    yield Section(
        "explained",
        "Where the time goes",
        items=tuple(sentence(each) for each in explanation.arms),
        note=("`tare explain STORE ARM` shows each part with its interval.",),
    )
    arms = [each for each in explanation.arms if each.causes and each.total is not None]
    most: dict[str, float] = {}
    for title, points in ((part.title, added_points(each, part.title)) for each in arms for part in each.causes):
        most[title] = max(most.get(title, 0.0), abs(points or 0.0))
    rows = [
        (title, *(added_points(each, title) for each in arms))
        for title in sorted(most, key=lambda title: -most[title])
        if most[title] >= LEAST_POINTS
    ]
    yield Section(
        "causes",
        "What each cause adds to the CPU time of an operation",
        (Column("percent", left=True), *(Column(plain(each.arm, 24), _points) for each in arms)),
        (*rows, ("all together", *(total_points(each) for each in arms))) if arms else (),
        (_READING, *notes(explanation, explanation.arms)),
        under=True,
        formats=PAGES,
    )


def _points(points: float) -> str:
    return f"{points:+.1f}"
