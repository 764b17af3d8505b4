"""Why a study ended, and the interval of each arm at that time."""

from __future__ import annotations

from collections.abc import Mapping

from tare.plan.model import Plan
from tare.plural import counted
from tare.protocols.stopping import End, Rule
from tare.run.resume import StudyState, decision
from tare.study.values import Strict


class ArmWidth(Strict):
    """Interval of one arm's relative throughput that the protocol decided by; `None` if there was none.

    `n`: blocks with both arm and baseline. `half_width`: a fraction of the baseline.
    """

    n: int
    low: float | None
    high: float | None
    half_width: float | None


class Ending(Strict):
    """End of a study. `reason`: `target`, `margin`, `blocks` or `time`.

    `machine_s`: machine seconds of all attempts in the finished `blocks`. `margin`: the margin that ended arms, in
    place of the target; `None` if the target did.
    """

    reason: str
    blocks: int
    machine_s: float
    target: float | None
    arms: Mapping[str, ArmWidth]
    margin: float | None = None

    @property
    def why(self) -> str:
        """The reason as a sentence without its full stop."""
        blocks = counted(self.blocks, "block")
        if self.reason == End.TARGET:
            return f"every interval is within \N{PLUS-MINUS SIGN}{100 * (self.target or 0):g} % after {blocks}"
        if self.reason == End.MARGIN:
            margin = f"\N{PLUS-MINUS SIGN}{100 * (self.margin or 0):g} %"
            return f"every arm is shown to be within {margin} or outside after {blocks}"
        if self.reason == End.TIME:
            return f"stopped at the time limit after {blocks}{self._achieved}"
        if self.blocks == 1:
            return f"the only block was completed{self._achieved}"
        return f"all {blocks} were completed{self._achieved}"

    @property
    def _achieved(self) -> str:
        """What a cap left open, with the widest arm by name."""
        if self.target is None:
            return ""
        if self.margin is not None:
            return (
                f", before every arm was shown to be within \N{PLUS-MINUS SIGN}{100 * self.margin:g} % or outside"
            )
        wanted = f"the target was \N{PLUS-MINUS SIGN}{100 * self.target:g} %"
        widths = {name: arm.half_width for name, arm in self.arms.items() if arm.half_width is not None}
        if len(widths) < len(self.arms) or not widths:
            return f", with no interval for some arms; {wanted}"
        name = max(widths, key=lambda each: widths[each])
        width = 100 * widths[name]
        digits = f"{width:.2g}" if width < 99.5 else f"{width:.0f}"  # never 2.1e+02
        return f"; widest interval \N{PLUS-MINUS SIGN}{digits} % ({name}), {wanted}"


def ending_of(plan: Plan, done: StudyState) -> Ending | None:
    """Return the ending that the records show; `None` while another block is to be made."""
    decided = decision(plan, done)
    if decided.end is None:
        return None
    rule = Rule.of(plan.study.protocol)
    return Ending(
        reason=decided.end.value,
        blocks=decided.blocks,
        machine_s=decided.seconds,
        target=rule.target,
        margin=rule.margin,
        arms={
            name: ArmWidth(n=arm.n, low=arm.low, high=arm.high, half_width=arm.half_width)
            for name, arm in decided.arms.items()
        },
    )
