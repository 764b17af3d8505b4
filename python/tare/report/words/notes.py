"""What a reader must know beside the table: what failed, what is missing, what could not be resolved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tare.analyze import Analysis, Finding
from tare.analyze.metrics import PRIMARY
from tare.analyze.runs import Failure
from tare.report.figures import percent
from tare.report.plain import plain
from tare.report.words.method import is_paired
from tare.run.ending import Ending

T = TypeVar("T", bound=Hashable)


def notes(analysis: Analysis, planned: int) -> tuple[str, ...]:
    """One sentence each, the gravest first; failed attempts are told by `failures`."""
    return (
        *_unfinished(analysis, planned),
        *_dropped(analysis),
        *_without_interval(analysis),
        *_unresolved(analysis),
    )


def ended(ending: Ending | None) -> tuple[str, ...]:
    """Why there is no further block."""
    return () if ending is None else (f"{ending.why[0].upper()}{ending.why[1:]}.",)


def failures(analysis: Analysis, longest: int = 8) -> tuple[str, ...]:
    """Each failed attempt in a sentence, the rest of a long list in one."""
    shown = tuple(told(failure) for failure in analysis.failures[:longest])
    more = len(analysis.failures) - longest
    if more <= 0:
        return shown
    return (
        *shown,
        f"{more} more {'attempt' if more == 1 else 'attempts'} failed; `--format json` lists all of them.",
    )


def told(failure: Failure) -> str:
    """`b02-3-bridge, attempt 1, failed in measure: …`."""
    where = f" in {failure.phase}" if failure.phase else ""
    again = "; another attempt is used" if failure.made_good else "; no other attempt was good"
    reason = plain(failure.reason, 300).rstrip(".")
    return f"{plain(failure.run_id, 80)}, attempt {failure.attempt}, failed{where}: {reason}{again}."


def _unfinished(analysis: Analysis, planned: int) -> Iterator[str]:
    if analysis.attempted < planned:
        yield f"{analysis.attempted} of {planned} planned runs have been made; `tare run` goes on with the rest."


def _dropped(analysis: Analysis) -> Iterator[str]:
    for (dropped, paired), arms in _alike(analysis, lambda one: (one.dropped, is_paired(one.estimate))).items():
        if dropped:
            blocks = ", ".join(f"block {each.block} ({plain(each.why, 200)})" for each in dropped)
            if paired:
                yield f"{arms.subject} {arms.verb('is', 'are')} compared without {blocks}."
            else:
                yield f"{arms.subject} {arms.verb('has', 'have')} no pair in {blocks}; what ran there counts too."


def _without_interval(analysis: Analysis) -> Iterator[str]:
    for why, arms in _alike(analysis, lambda finding: finding.estimate.why).items():
        if why is not None:
            yield f"{arms.subject} {arms.verb('is', 'are')} without an interval: {why}."


def _unresolved(analysis: Analysis) -> Iterator[str]:
    widths = {
        each.resolution for each in analysis.findings if each.below_resolution and each.resolution is not None
    }
    if widths:
        width = percent(max(widths), signed=False)
        yield (
            f"≤{width}: within one bucket ({width}) of the generator's histogram from the baseline, "
            "so no difference is claimed."
        )


@dataclass(frozen=True)
class Arms:
    """Arms of which the same is to be said."""

    names: tuple[str, ...]
    every: bool
    """There are others, and these are all of them."""

    @property
    def subject(self) -> str:
        """Their names, as the beginning of a sentence."""
        if self.every:
            return "Every arm"
        *most, last = (plain(name, 80) for name in self.names)
        return f"{', '.join(most)} and {last}" if most else last

    def verb(self, one: str, several: str) -> str:
        """The form that goes with the subject."""
        return one if self.every or len(self.names) == 1 else several


def _alike(analysis: Analysis, said: Callable[[Finding], T]) -> dict[T, Arms]:
    """What is said of the primary metric → the arms of which it is said."""
    findings = [finding for finding in analysis.findings if finding.metric == PRIMARY]
    names: dict[T, list[str]] = {}
    for finding in findings:
        names.setdefault(said(finding), []).append(finding.arm)
    return {what: Arms(tuple(arms), len(arms) == len(findings) > 1) for what, arms in names.items()}
