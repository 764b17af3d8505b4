"""An explanation in one sentence, and the notes on its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.analyze.explain.components import DAEMONS
from tare.plural import counted
from tare.report.figures import NONE, amount, decimals_of, interval, percent
from tare.report.plain import plain

if TYPE_CHECKING:
    from tare.analyze.explain.explanation import ArmExplanation, Explanation
    from tare.analyze.explain.parts import Change, Part

_NAMED = 3
"""Parts that a sentence names before it says `other`."""
_WORTH_NAMING = 0.1
"""Share of the whole difference; smaller parts are in `other`."""
READING = (
    "CPU per operation: that of the server and the program that carries its bytes, as in the report. Its parts are "
    "CPU time of server, client, helpers (what carries its port, shims) and kernel per operation, by what the CPU "
    "was doing. Added: arm minus baseline, with a 95 % interval over blocks; points: the same in percent of the "
    "baseline's CPU time with client and kernel. Waiting is time in which a thread of server or client waited; it "
    "is not part of the sum."
)


def sentence(arm: ArmExplanation, *, named: int = _NAMED) -> str:
    """`bridge: +7.1 % CPU per operation [5.0, 9.2]; with client and kernel +6.4 points: veth 4.1, other 2.3`."""
    name, total, known = plain(arm.arm, 60), arm.total, arm.overhead.point is not None
    if total is None or total.baseline_us <= 0:
        if not known:
            return f"{name}: CPU time per operation is unknown{_because(arm)}"
        return f"{name}: {_overhead(arm)}{_doubt(arm)}{_logged(arm)}{_because(arm)}"
    all_of_it = f"with client and kernel {_points(total.change.added_us, total, signed=True)} points"
    shown = f"{_overhead(arm)}; {all_of_it}" if known else f"CPU per operation {all_of_it}"
    if not arm.causes:
        shown += f", by the kernel's counters{_logged(arm)}"
    elif named_parts := _of_which(arm, total, named):
        shown += f": {named_parts}"
    return f"{name}: {shown}{_doubt(arm)}{_waiting(arm, total)}"


def _overhead(arm: ArmExplanation) -> str:
    shown = f"{percent(arm.overhead.point, decimals_of(arm.overhead))} CPU per operation"
    bounds = interval(arm.overhead)
    return shown if bounds == NONE else f"{shown} {bounds}"


def _doubt(arm: ArmExplanation) -> str:
    return "; not shown to differ from zero" if _not_shown(arm) else ""


def _logged(arm: ArmExplanation) -> str:
    """Say what log output adds, where no samples show it as a cause."""
    part = arm.log_output
    return "" if part is None else f"; {part.title} {added(part.change)} µs more in the engine"


def _because(arm: ArmExplanation) -> str:
    return f": {arm.lacks[0]}" if arm.lacks else ""


def _not_shown(arm: ArmExplanation) -> bool:
    low, high = arm.overhead.low, arm.overhead.high
    return low is not None and high is not None and low <= 0 <= high


def _of_which(arm: ArmExplanation, total: Part, named: int) -> str:
    """List the largest parts in percent of the baseline, negative ones included, and the rest."""
    whole = total.change.added_us
    by_size = sorted(arm.causes, key=lambda part: -abs(part.change.added_us))
    worth = [part for part in by_size if abs(part.change.added_us) >= _WORTH_NAMING * abs(whole)][:named]
    rest = whole - sum(part.change.added_us for part in worth)
    if not worth:
        return ""
    listed = [f"{part.title} {_points(part.change.added_us, total)}" for part in worth]
    return ", ".join([*listed, f"other {_points(rest, total)}"])


def _points(added_us: float, total: Part, *, signed: bool = False) -> str:
    text = f"{100 * added_us / total.baseline_us:{'+' if signed else ''}.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def _waiting(arm: ArmExplanation, total: Part) -> str:
    """Say how much longer an operation waits, if that is more than the CPU time it adds."""
    most = max(arm.waits, key=lambda part: part.change.added_us, default=None)
    if most is None or most.change.added_us <= max(total.change.added_us, 0.0) or not _sure(most.change):
        return ""
    kind = most.title.removeprefix("waiting: ")
    return f"; plus {amount(most.change.added_us)} µs per operation waiting{_FOR.get(kind, f' ({kind})')}"


_FOR = {"run queue": " for a CPU"}


def _sure(change: Change) -> bool:
    return change.shown or change.low is None


def added(change: Change) -> str:
    """Format a change in microseconds: `+4.1 [3.5, 4.7]`."""
    point = f"{change.added_us:+.3g}" if abs(change.added_us) < 1000 else f"{change.added_us:+,.0f}"
    if change.low is None or change.high is None:
        return point
    return f"{point} [{change.low:.3g}, {change.high:.3g}]"


def points(part: Part, arm: ArmExplanation) -> str:
    """Return what a part adds, in percent of the baseline's CPU time."""
    if arm.total is None or arm.total.baseline_us <= 0:
        return NONE
    return f"{100 * part.change.added_us / arm.total.baseline_us:+.1f}"


def notes(explanation: Explanation, arms: Sequence[ArmExplanation]) -> tuple[str, ...]:
    """Say how far the explanation can be trusted: what is missing, not covered by a rule, or not sampled."""
    lacks = list(dict.fromkeys(lack for arm in arms for lack in arm.lacks))
    if explanation.profiled < explanation.runs:
        lacks.append(f"stacks exist for {explanation.profiled} of {counted(explanation.runs, 'run')}")
    unnamed = [arm.unnamed for arm in arms if arm.unnamed is not None]
    if unnamed:
        lacks.append(
            f"{percent(max(unnamed), signed=False)} of the kernel's CPU time at most has no component "
            f"(table {explanation.table_version})"
        )
    lacks += [
        f"{plain(arm.arm, 60)}: the kernel's counters show {percent(abs(arm.unsampled), signed=False)} "
        f"{'more' if arm.unsampled > 0 else 'less'} CPU time of the server than the samples; its parts are too "
        f"{'small' if arm.unsampled > 0 else 'large'} by as much"
        for arm in arms
        if arm.unsampled is not None and abs(arm.unsampled) > FAR
    ]
    lacks += [words for arm in arms if (words := _daemons(arm)) is not None]
    thin = next((part.change.why for arm in arms for part in arm.causes if part.change.why is not None), None)
    if thin is not None:
        lacks.append(f"no intervals: {thin}")
    return tuple(lacks)


def _daemons(arm: ArmExplanation) -> str | None:
    """What the engine's daemons did meanwhile, if that is much beside an operation."""
    part = next((part for part in arm.rest if part.name == DAEMONS), None)
    if part is None or arm.total is None or arm.total.baseline_us <= 0:
        return None
    if max(part.us, part.baseline_us) < _MUCH_OF_DAEMONS * arm.total.baseline_us:
        return None
    return (
        f"{plain(arm.arm, 60)}: beside it{'' if arm.log_output is None else ', log output aside,'} the engine's "
        f"daemons used {amount(part.us)} µs of CPU for each "
        f"operation, and {amount(part.baseline_us)} beside the baseline; they serve all containers of this "
        "machine, so no arm is charged with it"
    )


_MUCH_OF_DAEMONS = 0.02
"""Share of the baseline's CPU time an operation from which on a note tells what the daemons used."""
FAR = 0.1
"""Share of the server's CPU time from which on a difference between counters and samples is reported."""


LEAST_POINTS = 0.3
"""Causes that add less in every arm have no row in the side-by-side table."""


def added_points(arm: ArmExplanation, title: str) -> float | None:
    """Return what a cause adds, in percent of the baseline's CPU time; `None` if the arm does not have it."""
    if arm.total is None or arm.total.baseline_us <= 0:
        return None
    whole = arm.total.baseline_us
    return next((100 * part.change.added_us / whole for part in arm.causes if part.title == title), None)


def total_points(arm: ArmExplanation) -> float | None:
    """Return what all causes together add, in percent of the baseline's CPU time."""
    if arm.total is None or arm.total.baseline_us <= 0:
        return None
    return 100 * arm.total.change.added_us / arm.total.baseline_us
