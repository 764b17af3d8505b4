"""What each arm costs, in a phrase, and how far the study can be trusted, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from tare.analyze.answer import ArmAnswer, Kind, Trust, Trusted, hidden_words
from tare.analyze.metrics import metric_named
from tare.plural import counted
from tare.report.figures import decimals_of, duration, percent
from tare.report.plain import plain

_NAMED = 3


def phrase(answer: ArmAnswer, block_s: float | None = None) -> str:
    """Say what an arm costs: `costs 33 to 51 % of throughput`. `block_s`: machine time of a block, seconds."""
    title = metric_named(answer.finding.metric).title
    more_is_better = metric_named(answer.finding.metric).more_is_better
    match answer.kind:
        case Kind.UNKNOWN:
            return f"no interval: {answer.finding.estimate.why or 'nothing was measured'}"
        case Kind.UNDECIDED:
            return f"undecided ({_span(answer, signed=True)} {title}{_more(answer, block_s)})"
        case Kind.ALIKE:
            return f"no measurable difference in {title} (within {_within(answer.within)})"
        case Kind.BELOW:
            most = percent(answer.high, decimals_of(answer.finding.estimate), signed=False)
            return f"costs less than {most} of {title}" if more_is_better else f"adds less than {most} to {title}"
        case Kind.COSTS:
            span = _span(answer)
            return f"costs {span} of {title}" if more_is_better else f"adds {span} to {title}"
        case Kind.GAINS:
            span = _span(answer)
            return f"gains {span} {title}" if more_is_better else f"takes {span} off {title}"


def _more(answer: ArmAnswer, block_s: float | None) -> str:
    """Say how many more blocks would decide, and how long they take."""
    if answer.more_blocks is None:
        return "; less noise is needed, not more blocks"
    takes = "" if block_s is None else f", {_about(answer.more_blocks * block_s)}"
    return f"; about {counted(answer.more_blocks, 'more block')} would decide{takes}"


def _about(seconds: float) -> str:
    """Format a time to come, in whole minutes from two minutes on."""
    return duration(seconds if seconds < 120 else 60 * round(seconds / 60)).removesuffix(" 0 s")


def _span(answer: ArmAnswer, *, signed: bool = False) -> str:
    """Format the interval: of the cost, or if `signed`, of the metric's change."""
    digits = decimals_of(answer.finding.estimate)
    if answer.low is None or answer.high is None:
        raise ValueError("an arm without an interval has none to format")
    if signed:
        low, high = answer.finding.estimate.low, answer.finding.estimate.high
    else:
        low, high = sorted((abs(answer.low), abs(answer.high)))
    first, last = percent(low, digits, signed=signed), percent(high, digits, signed=signed)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def _within(most: float | None) -> str:
    digits = 0 if most is not None and most >= 0.1 else 1
    return f"±{percent(most, digits, signed=False)}"


def trust_text(trusted: Trusted, block_s: float | None = None) -> str:
    """Say first whether the figures can be believed, and why not."""
    reasons, rest = trusted.reasons[:_NAMED], len(trusted.reasons) - _NAMED
    why = listed([*reasons, *([f"{rest} more"] if rest > 0 else [])] or [""])
    match trusted.level:
        case Trust.SOUND:
            most = trusted.could_hide
            shown = "" if most is None else f"; it would have shown one of more than {hidden_words(most)}"
            return f"Sound: no validity rule is broken, and the control shows no bias{shown}."
        case Trust.CARE:
            return f"Read with care: {why}."
        case Trust.INVALID:
            return "Invalid: two instances of the same arm differ, so no figure below can be believed."
        case Trust.NOISY:
            return f"Too noisy to decide: {_undecided(trusted, block_s)}." + (f" Also: {why}." if why else "")


def _undecided(trusted: Trusted, block_s: float | None) -> str:
    if trusted.widest is None:
        return "no arm has an interval"
    name = plain(trusted.widest.finding.arm, 60)
    more = _more(trusted.widest, block_s) if trusted.widest.kind is Kind.UNDECIDED else ""
    return f"{name} is known to {_within(trusted.widest.within)} only{more}"


def listed(words: Sequence[str]) -> str:
    """Join words by commas and a last `and`; there is at least one."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
