"""Headlines above the answer: whether the machine produces differences by itself, and what the protocol is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.analyze import Analysis
from tare.analyze.analysis import RULE, Control
from tare.analyze.answer import Trust, arm_answers, hidden_words, trust
from tare.plural import counted
from tare.protocols.registry import PROTOCOLS, as_published
from tare.record.emulated import sides_text
from tare.report.figures import decimals_of, interval, percent
from tare.report.plain import plain
from tare.report.words.answer_lines import trust_text
from tare.study.model import Study

_NAMED = 6


@dataclass(frozen=True)
class Headline:
    """A sentence or two; `grave`: the figures below must not be trusted as they stand."""

    text: str
    grave: bool
    lead: bool = False
    """Whether it says how far the whole can be trusted."""

    @property
    def style(self) -> str:
        """Style in a terminal."""
        return "bold red" if self.grave else "bold" if self.lead else "dim"


def headlines(study: Study, analysis: Analysis, block_s: float | None = None) -> tuple[Headline, ...]:
    """Return the headlines: how far to trust the study, imported and emulated results, the control, the protocol.

    `block_s`: machine time of a block, seconds.
    """
    return (
        *_trust(study, analysis, block_s),
        *_imported(study),
        *_emulated(analysis),
        *_missed(analysis),
        *_control(study, analysis.control),
        *_protocol(study),
    )


def _trust(study: Study, analysis: Analysis, block_s: float | None) -> Iterator[Headline]:
    trusted = trust(study, analysis, arm_answers(study, analysis))
    if trusted is not None:
        yield Headline(trust_text(trusted, block_s), grave=trusted.level in {Trust.NOISY, Trust.INVALID}, lead=True)


def _imported(study: Study) -> Iterator[Headline]:
    if study.imported is not None:
        yield Headline(
            f"Imported: measured by others ({plain(study.imported.origin, 120)}). It is unknown whether the arms "
            "had the same image, settings, limits and machine.",
            grave=False,
        )


def _emulated(analysis: Analysis) -> Iterator[Headline]:
    """Yield one sentence for arms that were emulated on the same sides."""
    arms: dict[str, list[str]] = {}
    for name, sides in analysis.emulated.items():
        arms.setdefault(sides_text(sides), []).append(plain(name, 60))
    for which, names in arms.items():
        more = f" and {counted(len(names) - _NAMED, 'more arm')}" if len(names) > _NAMED else ""
        yield Headline(
            f"Emulated: the {which} of {', '.join(names[:_NAMED])}{more} ran on an emulated CPU. Emulation has "
            "other costs than hardware, so neither their figures nor comparisons with them apply to a real "
            "machine.",
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
            f"Missed arrivals: {', '.join(parts)}{more}. The rate was higher than these arms can sustain, so "
            "some requests were never sent. Their latencies depend on the queue length that `most_waiting` "
            "allows.",
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
            f"INVALID ({RULE}). Two instances of the same arm differ: {sentence}. The machine causes differences "
            "of this size by itself. Reduce other load or pin CPUs, then run the study again.",
            grave=True,
        )
    else:
        hidden = hidden_words(control.could_hide or 0.0)
        yield Headline(
            f"Control: {sentence}: no bias was detected; it could hide \N{PLUS-MINUS SIGN}{hidden}.", grave=False
        )


def _protocol(study: Study) -> Iterator[Headline]:
    if PROTOCOLS[study.protocol.name].at_once:
        yield Headline(
            "A different operating point: in a duet two arms run at the same time on separate CPUs. Do not mix "
            "these overheads with those of arms that ran alone.",
            grave=False,
        )
    name = study.protocol.name
    if as_published(study):
        yield Headline(
            f"The protocol `{name}` repeats what publications do, for comparison only; its intervals are too "
            "narrow (see docs/concepts/estimates.md).",
            grave=True,
        )
