"""Where the time goes in a report: a sentence for each arm, and what each cause adds."""

from __future__ import annotations

from dataclasses import dataclass

from tare.report.content import Report
from tare.report.explain.words import LEAST_POINTS, added_points, notes, sentence, total_points
from tare.report.figures import NONE
from tare.report.plain import plain


@dataclass(frozen=True)
class Section:
    """The section. `columns` and `rows`: causes by arm, in percent of the baseline's CPU time."""

    sentences: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    reading: str
    notes: tuple[str, ...]


READING = (
    "CPU time per operation that each cause adds, in percent of the baseline's. `tare explain STORE ARM` shows "
    "intervals, sides and waiting; with `--format flamegraph`, the stacks."
)


def explained(report: Report) -> Section | None:
    """Return the section; `None` if no run sampled stacks."""
    explanation = report.explanation
    if explanation is None:
        return None
    arms = [arm for arm in explanation.arms if arm.causes and arm.total is not None]
    most: dict[str, float] = {}
    for title, points in ((part.title, added_points(arm, part.title)) for arm in arms for part in arm.causes):
        most[title] = max(most.get(title, 0.0), abs(points or 0.0))
    rows = [
        (title, *(_cell(added_points(arm, title)) for arm in arms))
        for title in sorted(most, key=lambda title: -most[title])
        if most[title] >= LEAST_POINTS
    ]
    return Section(
        sentences=tuple(sentence(arm) for arm in explanation.arms),
        columns=("percent", *(plain(arm.arm, 24) for arm in arms)),
        rows=(*rows, ("all together", *(_cell(total_points(arm)) for arm in arms))),
        reading=READING,
        notes=notes(explanation, explanation.arms),
    )


def _cell(value: float | None) -> str:
    return NONE if value is None else f"{value:+.1f}"
