"""Highest rate at which a latency bound holds, from one climb: rates that rise by a constant ratio.

Each rung lasts equally long. It holds the bound or not; the result is the rate that fewest rungs contradict. Its
error, and how that was determined: docs/decisions/ and tests/unit/workloads/tare_load/test_sustainable.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from pydantic import Field, model_validator

from tare.errors import RunFailed
from tare.study.values import Strict
from tare.workloads import Rung, Sustained

Quantile = Literal["p50", "p95", "p99"]
_FEWEST_BEYOND = 10
"""Fewest requests of a rung beyond the quantile; with fewer, the quantile rests on too few requests."""
_MOST_CONTRADICTING = 0.2
"""Largest share of rungs on the wrong side; beyond it, there is no limit but an unsteady server."""


class SustainableSpec(Strict):
    """Bound: `quantile` within `within_ms`, no arrival missed. Climb: `rungs` rates, `from_per_s` to `to_per_s`."""

    quantile: Quantile = "p99"
    within_ms: float = Field(gt=0.0, le=3_600_000.0)
    from_per_s: float = Field(gt=0.0, le=1e9)
    to_per_s: float = Field(gt=0.0, le=1e9)
    rungs: int = Field(default=20, ge=5, le=200)

    @model_validator(mode="after")
    def _climbs(self) -> SustainableSpec:
        if self.to_per_s <= self.from_per_s:
            raise ValueError("`to_per_s` is not above `from_per_s`")
        return self

    @property
    def ratio(self) -> float:
        """Ratio of a rung's rate to the rate of the rung below."""
        return float((self.to_per_s / self.from_per_s) ** (1 / (self.rungs - 1)))

    @property
    def rates_per_s(self) -> tuple[float, ...]:
        """Rates of all rungs, ascending."""
        return tuple(self.from_per_s * self.ratio**n for n in range(self.rungs))

    def fewest(self) -> float:
        """Fewest requests that a rung needs for a meaningful quantile."""
        return _FEWEST_BEYOND / (1 - float(self.quantile.removeprefix("p")) / 100)


@dataclass(frozen=True)
class MeasuredRung:
    """One rung as measured. `latency_ms`: its quantile, `None` if no reply came."""

    rate_per_s: float
    done_per_s: float
    latency_ms: float | None
    missed: int

    def holds(self, within_ms: float) -> bool:
        """Whether the rung kept the bound."""
        return self.latency_ms is not None and self.latency_ms <= within_ms and not self.missed


def sustained(spec: SustainableSpec, rungs: Sequence[MeasuredRung]) -> Sustained:
    """Rate between the two rungs where the bound stopped holding. Raises `RunFailed` if the climb has none.

    The edge is where fewest rungs contradict it (rungs that fail below it, and rungs that hold above it); of equal
    places, the lowest. This is the falling step with the least absolute deviations (isotonic regression of 0 and 1;
    Barlow et al., Statistical Inference under Order Restrictions, 1972). The rate is the geometric mean of the
    rungs on both sides of the edge, half a rung from each.
    """
    held = [rung.holds(spec.within_ms) for rung in rungs]
    failing_below = list(accumulate((not holds for holds in held), initial=0))
    holding_above = [sum(held[edge:]) for edge in range(len(held) + 1)]
    wrong = [below + above for below, above in zip(failing_below, holding_above, strict=True)]
    edge = wrong.index(min(wrong))
    bound = f"{spec.quantile} <= {spec.within_ms:g} ms"
    if wrong[edge] > _MOST_CONTRADICTING * len(rungs):
        raise RunFailed(
            f"{bound} held at {sum(held)} of {len(held)} rates in no clear order, so there is no sustainable rate",
            hint="hold each rate longer (measure_s), or find what disturbs the server",
        )
    if edge == len(rungs):
        raise RunFailed(
            f"{bound} still held at {rungs[-1].rate_per_s:.0f}/s, the highest rate tried", hint="raise `to_per_s`"
        )
    if edge == 0:
        raise RunFailed(
            f"{bound} did not hold at {rungs[0].rate_per_s:.0f}/s, the lowest rate tried",
            hint="lower `from_per_s`, or allow more latency",
        )
    return Sustained(
        rate_per_s=math.sqrt(rungs[edge - 1].rate_per_s * rungs[edge].rate_per_s),
        resolution=spec.ratio - 1,
        quantile=spec.quantile,
        within_ms=spec.within_ms,
        contradicting=wrong[edge],
        rungs=tuple(Rung(rung.rate_per_s, rung.done_per_s, rung.latency_ms, rung.missed) for rung in rungs),
    )
