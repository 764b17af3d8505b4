"""Errors that a figure does not show."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.numbers import number_at
from tare.analyze.validity.evidence import Alarm, Evidence, ids

FAILING = 0.1
"""Share of an arm's attempts. Failed runs are left out: where they are more than a few, those left are a choice."""


def errors(evidence: Evidence) -> Iterator[Alarm]:
    """A good run with errors or reconnects, or an arm of which two attempts or more failed, over one in ten."""
    for arm in evidence.attempted:
        good = evidence.good(arm)
        wrong = [run for run in good if any(number_at(run.measurement, (key,)) for key in ("errors", "reconnects"))]
        if wrong:
            yield Alarm(
                "errors",
                arm,
                "the generator had errors or reconnects in runs that count",
                ids(wrong),
                "read their raw files; a refused or repeated operation is no operation",
            )
        failed = [failure for failure in evidence.runs.failures if failure.arm == arm]
        if len(failed) > max(1, FAILING * (len(failed) + len(good))):
            others = "and only the others are compared" if good else "so that nothing is known of this arm"
            yield Alarm(
                "errors",
                arm,
                f"{len(failed)} of {len(failed) + len(good)} attempts failed, {others}",
                tuple(dict.fromkeys(failure.run_id for failure in failed)),
                "find why; if runs fail because they are slow, what is left is too fast",
            )
