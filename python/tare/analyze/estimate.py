"""A value with its uncertainty, the finding made of it, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.run.emulated import BASELINE_MARK, MARK
from tare.run.record import Side


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


@dataclass(frozen=True)
class Estimate:
    """A relative effect as a fraction (-0.58 is -58 %), with the interval that belongs to it.

    `low` and `high` are `None` where `n` is too small for an interval; `why` then says so.
    """

    point: float | None
    low: float | None
    high: float | None
    n: int
    """Number of independent units behind it: blocks, never windows."""
    confidence: float
    method: str
    why: str | None = None


@dataclass(frozen=True)
class SiteEffect:
    """The effect on one site by its own blocks: relative, with their t interval where there are enough of them."""

    site: str
    blocks: int
    point: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OverSites:
    """An effect over several sites.

    `between`: standard deviation of the sites' own effects, on the log scale; `between_p`: probability of sites
    that differ as much where none does, by F; `next_low`, `next_high`: where the effect on another site of the
    same kind is expected; `None` where that is not known. `error`, `freedom`: of the t of the mean log ratio
    `mean`; no error without any spread. `pooled`: the estimate from all blocks as if they were of one site.
    """

    estimate: Estimate
    sites: tuple[SiteEffect, ...]
    mean: float
    error: float | None
    freedom: int
    between: float
    between_p: float | None
    next_low: float | None
    next_high: float | None
    pooled: Estimate


@dataclass(frozen=True)
class OverHosts:
    """An effect where server and client change hosts every other block.

    `hosts`: the effect with the server on either host (`site` names it). `error`, `freedom`: of the t of the mean
    log ratio `mean`; no error without any spread. `apart`: by how much the effect on the second host differs from
    that on the first; `apart_p`: probability of so much where none is. `pooled`: the estimate from all blocks as
    if hosts made no difference.
    """

    estimate: Estimate
    hosts: tuple[SiteEffect, ...]
    mean: float
    error: float | None
    freedom: int
    apart: float
    apart_p: float | None
    pooled: Estimate


@dataclass(frozen=True)
class Dropped:
    """A block that a finding had to do without, and why."""

    block: int
    why: str


@dataclass(frozen=True)
class Finding:
    """One arm against its baseline in one metric, with the published figure beside it.

    The sign is that of the metric: throughput -0.58 is 58 % fewer transactions, latency +0.12 is 12 % longer.
    """

    study: str
    arm: str
    levels: Mapping[str, str]
    baseline: str
    metric: str
    estimate: Estimate
    published: float | None
    """The published relative effect, a fraction."""
    blocks: tuple[tuple[int, float], ...]
    """(block, relative effect in that block): the points behind the estimate."""
    published_where: str | None = None
    """Page, table or section of the publication."""
    dropped: tuple[Dropped, ...] = ()
    resolution: float | None = None
    """Relative width of the generator's histogram bucket, where the metric is read from one."""
    below_resolution: bool = False
    """The difference is no larger than one bucket, so that it must not be claimed."""
    control: bool = False
    """The arm is a second instance of the baseline."""
    stratum: Mapping[str, str] = field(default_factory=dict)
    """Condition → level, of the blocks that it is of; empty: all of them."""
    as_published: Estimate | None = None
    """The same by the publication's own way, where the study names it."""
    judgement: Judgement = field(default_factory=Judgement)
    emulated: tuple[Side, ...] = ()
    """Which sides of the arm ran on an emulated CPU; `baseline_emulated`: of the baseline."""
    baseline_emulated: tuple[Side, ...] = ()
    over_sites: OverSites | None = None
    """Where its blocks are of several sites: the estimate is then over sites and blocks."""
    over_hosts: OverHosts | None = None
    """Where server and client change hosts: the estimate then weighs both hosts alike."""

    @property
    def mark(self) -> str | None:
        """What is said wherever the finding is shown, `None` where nothing was emulated."""
        return MARK if self.emulated else BASELINE_MARK if self.baseline_emulated else None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is there, lies on one side of zero, and the generator could resolve the effect."""
        low, high = self.estimate.low, self.estimate.high
        return low is not None and high is not None and (low > 0 or high < 0) and not self.below_resolution

    @property
    def borne_out(self) -> bool:
        """Whether a difference may be claimed: the interval excludes zero, and still does so among its family."""
        return self.excludes_zero and self.judgement.differs
