"""A check as Markdown, for a job's summary or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.overhead_limit import Outcome
from tare.report.check.content import READING, Check, figures, in_words, title, widened
from tare.report.markdown.text import text

_MARKS = {
    Outcome.PASS: "\u2705",
    Outcome.FAIL: "\u274c",
    Outcome.INCONCLUSIVE: "\u2754",
    Outcome.TOO_NOISY: "\u2754",
}
"""Shown beside words, which say the same."""


def render(check: Check) -> str:
    """Return the sentence, headlines, tables and notes."""
    study = check.study
    lines = [
        f"### {_MARKS[check.outcome]} {text(check.sentence, 400)}",
        "",
        f"Study {text(study.name, 80)} at scale {text(study.scale, 40)}.",
    ]
    for headline in check.headlines:
        sentence = text(headline.text, 600)
        lines += ["", f"**{sentence}**" if headline.grave else sentence]
    for metric in check.metrics:
        lines += ["", *_table(check, metric)]
    lines += ["", text(READING, 600)]
    lines += ["", *(f"- {text(note, 700)}" for note in check.notes)] if check.notes else []
    return "\n".join(lines) + "\n"


def _table(check: Check, metric: str) -> Iterator[str]:
    by = widened(check, metric)
    limit = title(check, metric)
    yield text(limit if by is None else f"{limit}; intervals {by}", 300)
    yield ""
    yield "| arm | n | overhead | 95 % interval | |"
    yield "|---|---:|---:|---:|---|"
    for one in (each for each in check.checks if each.metric == metric):
        point, bounds = figures(one)
        cells = (
            text(one.arm, 80),
            str(one.n),
            point,
            text(bounds),
            f"{_MARKS[one.outcome]} {text(in_words(one), 300)}",
        )
        yield f"| {' | '.join(cells)} |"
