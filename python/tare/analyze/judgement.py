"""What is said of a finding beside its interval: the verdict against its margin, and the tests behind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What may be said; "no overhead" is not among it."""

    EQUIVALENT = "equivalent"
    """The effect lies within the margin."""
    DIFFERENT = "different"
    """The effect is not zero, and not shown to lie within the margin."""
    INCONCLUSIVE = "inconclusive"
    """Neither is shown; more rounds may tell."""


@dataclass(frozen=True)
class Judgement:
    """`verdict`: `None` without a margin, and where `withheld` says why there is none.

    `p_zero`: that the effect is zero; `p_outside`: that it is outside the margin; both adjusted over the `family`
    of metrics that the finding is judged with (1 for the primary one), `None` where nothing can be tested.
    `differs`: the effect is not zero, by `p_zero`, and larger than what the generator can resolve.
    """

    margin: float | None = None
    verdict: Verdict | None = None
    withheld: str | None = None
    p_zero: float | None = None
    p_outside: float | None = None
    family: int = 1
    differs: bool = False
