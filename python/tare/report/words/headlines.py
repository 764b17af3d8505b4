"""What stands above the answer: whether the machine makes differences up, and what the protocol is good for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.analyze import Analysis
from tare.analyze.analysis import RULE, Control
from tare.plural import counted
from tare.protocols.registry import PROTOCOLS, as_published
from tare.report.figures import decimals_of, interval, percent
from tare.report.plain import plain
from tare.run.emulated import sides_text
from tare.study.model import Study

_NAMED = 6


@dataclass(frozen=True)
class Headline:
    """A sentence or two; `grave`: the figures beneath must not be believed as they stand."""

    text: str
    grave: bool


def headlines(study: Study, analysis: Analysis) -> tuple[Headline, ...]:
    """The control's interval first; then what a published baseline is."""
    return (
        *_imported(study),
        *_emulated(analysis),
        *_missed(analysis),
        *_control(study, analysis.control),
        *_protocol(study),
    )


def _imported(study: Study) -> Iterator[Headline]:
    if study.imported is not None:
        yield Headline(
            f"Imported: measured by others ({plain(study.imported.origin, 120)}). Whether the arms had the same "
            "bits, settings, limits and machine is not known.",
            grave=False,
        )


def _emulated(analysis: Analysis) -> Iterator[Headline]:
    """Of arms that were emulated in the same sides one sentence."""
    arms: dict[str, list[str]] = {}
    for name, sides in analysis.emulated.items():
        arms.setdefault(sides_text(sides), []).append(plain(name, 60))
    for which, names in arms.items():
        more = f" and {counted(len(names) - _NAMED, 'more arm')}" if len(names) > _NAMED else ""
        yield Headline(
            f"Emulated: the {which} of {', '.join(names[:_NAMED])}{more} ran on a CPU that software emulates. What "
            "emulation costs is not what a machine costs, so neither their figures nor comparisons with them hold "
            "for any.",
            grave=True,
        )


def _missed(analysis: Analysis) -> Iterator[Headline]:
    missed = [(arm.arm, arm.missed) for arm in analysis.arms if arm.missed is not None and arm.missed.missed]
    if missed:
        parts = [
            f"{plain(name, 60)} {percent(one.missed / one.scheduled, signed=False)} "
            f"({one.missed:,} of {one.scheduled:,})"
            for name, one in missed[:_NAMED]
        ]
        more = f" and {counted(len(missed) - _NAMED, 'more arm')}" if len(missed) > _NAMED else ""
        yield Headline(
            f"Missed arrivals: {', '.join(parts)}{more}. The rate was more than these arms can take, so that "
            "requests were never sent; their latencies are those of a queue as long as `most_waiting` allows.",
            grave=True,
        )


def _control(study: Study, control: Control | None) -> Iterator[Headline]:
    if control is None:
        yield Headline(
            "No control: this study has no second instance of its baseline to estimate noise from.",
            grave=False,
        )
        return
    estimate, name, baseline = control.estimate, plain(control.arm, 60), plain(study.baseline, 60)
    if estimate.point is None or estimate.low is None:
        yield Headline(f"Control: no interval for {name} against {baseline}, {estimate.why}.", grave=False)
        return
    effect = f"{percent(estimate.point, decimals_of(estimate))} throughput, 99 % interval {interval(estimate)} %"
    sentence = f"{name}, a second instance of {baseline}: {effect} over {counted(estimate.n, 'block')}"
    if control.differs:
        yield Headline(
            f"INVALID ({RULE}). Two instances of the same arm differ: {sentence}. Noise of this machine is "
            "part of every figure here. Make the machine quieter, or pin CPUs, and run the study again.",
            grave=True,
        )
    else:
        yield Headline(f"Control: {sentence}; it includes zero, as it should.", grave=False)


def _protocol(study: Study) -> Iterator[Headline]:
    if PROTOCOLS[study.protocol.name].at_once:
        yield Headline(
            "A different operating point: in a duet two arms run at once, each on CPUs of its own, so neither has "
            "the machine to itself. Do not mix these overheads with those of arms that ran alone.",
            grave=False,
        )
    name = study.protocol.name
    if as_published(study):
        yield Headline(
            f"The protocol `{name}` repeats what publications do, to be compared with; its intervals do not hold "
            "what they promise (see docs/concepts/estimates.md).",
            grave=True,
        )
