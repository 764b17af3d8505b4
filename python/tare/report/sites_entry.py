"""Entries in the JSON findings for studies on several sites."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from tare.analyze.estimate import OverSites

_WHOLE = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SiteEntry(BaseModel):
    """The effect on one site, from its own blocks."""

    model_config = _WHOLE

    site: str
    blocks: int
    point: float
    low: float | None
    high: float | None


class SitesEntry(BaseModel):
    """How much sites differ, for blocks on several sites."""

    model_config = _WHOLE

    sites: tuple[SiteEntry, ...]
    between: float = Field(description="Standard deviation of the sites' own effects, on the log scale.")
    between_p: float | None = Field(
        description="Probability of a difference at least this large if the sites do not differ."
    )
    next_low: float | None = Field(
        description="Interval in which the effect on another site of the same kind is expected."
    )
    next_high: float | None
    pooled_low: float | None = Field(
        description="Interval over all blocks that ignores differences between sites, for comparison."
    )
    pooled_high: float | None


def sites_entry(over: OverSites | None) -> SitesEntry | None:
    """Convert to the entry of a finding."""
    if over is None:
        return None
    return SitesEntry(
        sites=tuple(
            SiteEntry(site=one.site, blocks=one.blocks, point=one.point, low=one.low, high=one.high)
            for one in over.sites
        ),
        between=over.between,
        between_p=over.between_p,
        next_low=over.next_low,
        next_high=over.next_high,
        pooled_low=over.pooled.low,
        pooled_high=over.pooled.high,
    )
