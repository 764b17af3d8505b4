"""Estimates (values with uncertainty), findings made of them, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tare.record.emulated import BASELINE_MARK, MARK
from tare.record.observation import Side


class Verdict(StrEnum):
    """Possible verdicts on an effect; "no overhead" is not one of them."""

    EQUIVALENT = "equivalent"
    """The effect lies within the margin."""
    DIFFERENT = "different"
    """The effect is not zero, and is not shown to lie within the margin."""
    INCONCLUSIVE = "inconclusive"
    """Neither is shown; more blocks may decide."""


@dataclass(frozen=True)
class Judgement:
    """Verdict on a finding, with its tests; a p value is `None` if no test is possible."""

    margin: float | None = None
    """Largest effect that the study declares irrelevant."""
    verdict: Verdict | None = None
    withheld: str | None = None
    """Why there is no verdict although there is a margin."""
    p_zero: float | None = None
    """p value of no effect, adjusted over the family."""
    p_outside: float | None = None
    """p value of an effect outside the margin, adjusted too."""
    family: int = 1
    """Metrics that are judged together, over which the p values are adjusted; 1: not adjusted."""
    differs: bool = False
    """Whether `p_zero` excludes zero, and the effect is larger than what the generator can resolve."""


@dataclass(frozen=True)
class Estimate:
    """A relative effect as a fraction (-0.58 is -58 %), with its confidence interval."""

    point: float | None
    low: float | None
    high: float | None
    n: int
    """Number of independent units: blocks, never windows."""
    confidence: float
    method: str
    why: str | None = None
    """Why there is no interval: for example, `n` is too small."""


@dataclass(frozen=True)
class SiteEffect:
    """Relative effect on one site by its own blocks, with their t interval if there are enough blocks."""

    site: str
    blocks: int
    point: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OverSites:
    """How much an effect differs between sites, for blocks on several sites."""

    estimate: Estimate
    sites: tuple[SiteEffect, ...]
    mean: float
    """Mean log ratio."""
    error: float | None
    """Standard error of the mean; `None` without any spread."""
    freedom: int
    """Degrees of freedom for t."""
    between: float
    """Standard deviation of the sites' own effects, on the log scale."""
    between_p: float | None
    """p value, by F, of sites that do not differ."""
    next_low: float | None
    """Interval in which the effect on another site of the same kind is expected."""
    next_high: float | None
    pooled: Estimate
    """The estimate from all blocks, as if they came from one site."""


@dataclass(frozen=True)
class HostEffect:
    """Relative effect in the blocks with the server on one host."""

    host: str
    blocks: int
    point: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OverHosts:
    """Whether an effect differs between hosts, if server and client swap them every other block."""

    estimate: Estimate
    hosts: tuple[HostEffect, ...]
    mean: float
    """Mean log ratio."""
    error: float | None
    """Standard error of the mean; `None` without any spread."""
    freedom: int
    """Degrees of freedom for t."""
    apart: float
    """Effect on the second host relative to the first, a fraction."""
    apart_p: float | None
    """p value of no difference between the hosts."""
    pooled: Estimate
    """The estimate from all blocks, as if hosts made no difference."""


class BlockEffect(NamedTuple):
    """The relative effect in one block."""

    block: int
    point: float


@dataclass(frozen=True)
class Dropped:
    """A block that a finding could not use, and the reason."""

    block: int
    why: str


@dataclass(frozen=True)
class Finding:
    """One arm against its baseline in one metric, with the published figure.

    The sign is that of the metric: throughput -0.58 is 58 % fewer transactions, latency +0.12 is 12 % longer.
    """

    study: str
    arm: str
    levels: Mapping[str, str]
    baseline: str
    metric: str
    estimate: Estimate
    published: float | None
    """Published relative effect, as a fraction."""
    blocks: tuple[BlockEffect, ...]
    """The points behind the estimate."""
    published_where: str | None = None
    """Page, table or section of the publication."""
    dropped: tuple[Dropped, ...] = ()
    resolution: float | None = None
    """Relative width of the generator's histogram bucket, if the metric comes from a histogram."""
    below_resolution: bool = False
    """Whether the difference is no larger than one bucket, so that it must not be claimed."""
    control: bool = False
    """Whether the arm is a second instance of the baseline."""
    stratum: Mapping[str, str] = field(default_factory=dict)
    """Condition → level of the blocks that the finding covers; empty: all blocks."""
    as_published: Estimate | None = None
    """Estimate by the publication's own method, if the study names one."""
    judgement: Judgement = field(default_factory=Judgement)
    emulated: tuple[Side, ...] = ()
    """Sides of the arm that ran on an emulated CPU; `baseline_emulated`: of the baseline."""
    baseline_emulated: tuple[Side, ...] = ()
    over_sites: OverSites | None = None
    """Set if the blocks come from several sites: the estimate is then over sites and blocks."""
    over_hosts: OverHosts | None = None
    """Set if server and client swap hosts: the estimate then weighs both hosts equally."""

    @property
    def mark(self) -> str | None:
        """Mark to show with the finding; `None` if nothing was emulated."""
        return MARK if self.emulated else BASELINE_MARK if self.baseline_emulated else None

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval on one side of zero, and the generator could resolve the effect."""
        low, high = self.estimate.low, self.estimate.high
        return low is not None and high is not None and (low > 0 or high < 0) and not self.below_resolution

    @property
    def is_supported(self) -> bool:
        """Whether a difference may be claimed: the interval and the adjusted p value both exclude zero."""
        return self.excludes_zero and self.judgement.differs
