"""The gate of a comparison: the limit of `--fail-on`, and what each arm's change says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.analyze.metrics import metric_named
from tare.analyze.overhead_limit import LimitCheck, Outcome, worst
from tare.report.check.content import figures, in_words
from tare.report.plain import plain


@dataclass(frozen=True)
class Gate:
    """What `--fail-on` decides. `most`: the limit, a fraction."""

    most: float
    checks: tuple[LimitCheck, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome of all arms together."""
        return worst([each.outcome for each in self.checks])

    def lines(self) -> Iterator[str]:
        """Yield the outcome in a sentence, and a line for each arm that does not pass."""
        failed = [each for each in self.checks if each.outcome is not Outcome.PASS]
        words = self.outcome.value.replace("-", " ").upper()
        of = len(self.checks)
        yield f"{words}: {of - len(failed)} of {of} changes from A to B are at most {100 * self.most:g} % worse."
        for one in failed:
            change, bounds = figures(one)
            title = metric_named(one.metric).title
            yield f"{plain(one.arm, 60)}, {title}: {change}, 95 % interval {bounds} %; {in_words(one)}."
