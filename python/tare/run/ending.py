"""Why a study ended, and what was known of each arm when it did."""

from __future__ import annotations

from collections.abc import Mapping

from tare.plan.model import Plan
from tare.plural import counted
from tare.protocols.stopping import End, Rule
from tare.run.resume import StudyState, decision
from tare.study.values import Strict


class ArmWidth(Strict):
    """The interval of one arm's relative throughput by which the protocol decided; `None` where there was none.

    `n`: blocks with both arm and baseline. `half_width`: a fraction of the baseline.
    """

    n: int
    low: float | None
    high: float | None
    half_width: float | None


class Ending(Strict):
    """`reason`: `target`, `margin`, `blocks` or `time`. `machine_s`: of all attempts of the finished `blocks`.

    `margin`: by which arms end in place of the target, `None` where it is the target.
    """

    reason: str
    blocks: int
    machine_s: float
    target: float | None
    arms: Mapping[str, ArmWidth]
    margin: float | None = None

    @property
    def why(self) -> str:
        """In a sentence without its full stop."""
        blocks = counted(self.blocks, "block")
        if self.reason == End.TARGET:
            return f"every interval is within \N{PLUS-MINUS SIGN}{100 * (self.target or 0):g} % after {blocks}"
        if self.reason == End.MARGIN:
            margin = f"\N{PLUS-MINUS SIGN}{100 * (self.margin or 0):g} %"
            return f"every arm is shown to be within {margin} or outside after {blocks}"
        if self.reason == End.TIME:
            return f"the cap on machine time ended it after {blocks}{self._achieved}"
        if self.blocks == 1:
            return f"the one block was made{self._achieved}"
        return f"all {blocks} were made{self._achieved}"

    @property
    def _achieved(self) -> str:
        """What a cap left open, the widest arm named."""
        if self.target is None:
            return ""
        if self.margin is not None:
            return (
                f", before every arm was shown to be within \N{PLUS-MINUS SIGN}{100 * self.margin:g} % or outside"
            )
        wanted = f"\N{PLUS-MINUS SIGN}{100 * self.target:g} % was the target"
        widths = {name: arm.half_width for name, arm in self.arms.items() if arm.half_width is not None}
        if len(widths) < len(self.arms) or not widths:
            return f", with no interval for some arms where {wanted}"
        name = max(widths, key=lambda each: widths[each])
        width = 100 * widths[name]
        digits = f"{width:.2g}" if width < 99.5 else f"{width:.0f}"  # never 2.1e+02
        return f", with {name} known to \N{PLUS-MINUS SIGN}{digits} % where {wanted}"


def ending_of(plan: Plan, done: StudyState) -> Ending | None:
    """The ending that the records tell, `None` while another block is to be made."""
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
