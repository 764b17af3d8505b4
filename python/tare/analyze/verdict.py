"""Verdicts against a margin that was declared beforehand: equivalent, different or inconclusive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]  # has no stubs

from tare.analyze.paired_t import FEWEST_BLOCKS


class Verdict(StrEnum):
    """What may be said; "no overhead" is not among it."""

    EQUIVALENT = "equivalent"
    """The effect lies within the margin."""
    DIFFERENT = "different"
    """The effect is not zero, and not shown to lie within the margin."""
    INCONCLUSIVE = "inconclusive"
    """Neither is shown; more rounds may tell."""


@dataclass(frozen=True)
class PValues:
    """The p values behind a verdict: that the effect is outside the margin, and that it is zero."""

    outside: float
    zero: float


def p_values(ratios: Sequence[float], margin: float) -> PValues | None:
    """Two one-sided t tests and a two-sided one on the log ratios; `None` where nothing can be tested.

    The margin is symmetric on the log scale: within 1/(1 + margin) and 1 + margin. p of equivalence is the larger
    of the two one-sided ones. Schuirmann, "A comparison of the two one-sided tests procedure …", J. Pharmacokinet.
    Biopharm. 15 (1987).
    """
    if margin <= 0:
        raise ValueError(f"a margin is above 0, not {margin:g}")
    logs = np.log(np.asarray(ratios, dtype=float))
    if len(logs) < FEWEST_BLOCKS or float(np.ptp(logs)) < 1e-12:
        return None
    bound = float(np.log1p(margin))
    above = stats.ttest_1samp(logs, -bound, alternative="greater").pvalue
    below = stats.ttest_1samp(logs, bound, alternative="less").pvalue
    return PValues(outside=max(float(above), float(below)), zero=float(stats.ttest_1samp(logs, 0.0).pvalue))


def verdict(found: PValues | None, alpha: float = 0.05) -> Verdict:
    """Equivalent comes first: a tiny effect that is surely not zero still lies within the margin."""
    if found is None:
        return Verdict.INCONCLUSIVE
    if found.outside < alpha:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if found.zero < alpha else Verdict.INCONCLUSIVE


def holm(raw: Mapping[str, float]) -> dict[str, float]:
    """Adjust a family of p values so that one false one among all of them is as rare as alpha.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
    """
    if not raw:
        return {}
    adjusted = multipletests(list(raw.values()), method="holm")[1]
    return {name: float(p) for name, p in zip(raw, adjusted, strict=True)}


def adjusted(family: Mapping[str, PValues]) -> dict[str, PValues]:
    """The tests of secondary metrics, each kind a family of its own."""
    outside = holm({name: one.outside for name, one in family.items()})
    zero = holm({name: one.zero for name, one in family.items()})
    return {name: PValues(outside=outside[name], zero=zero[name]) for name in family}
