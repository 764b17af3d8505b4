"""Entries in the JSON findings for studies that swap server and client hosts every other block."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from tare.analyze.analysis import Machines
from tare.analyze.estimate import OverHosts

_WHOLE = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class HostEntry(BaseModel):
    """The effect in the blocks with the server on one host."""

    model_config = _WHOLE

    host: str
    blocks: int
    point: float
    low: float | None
    high: float | None


class HostsEntry(BaseModel):
    """Whether an arm's effect differs between the hosts."""

    model_config = _WHOLE

    hosts: tuple[HostEntry, ...]
    apart: float = Field(description="Effect on the second host relative to the first, as a fraction.")
    apart_p: float | None = Field(
        description="Probability of effects at least this far apart if the hosts do not differ."
    )
    pooled_low: float | None = Field(description="Interval that ignores differences between hosts, for comparison.")
    pooled_high: float | None


class MachinesEntry(BaseModel):
    """Throughput of all arms with the server on `turned`, relative to the server on `own`."""

    model_config = _WHOLE

    own: str = Field(description="Name of the server's host in the file of sites.")
    turned: str
    point: float | None
    low: float | None
    high: float | None
    n: int = Field(description="Pairs of blocks.")
    confidence: float
    why: str | None


def hosts_entry(over: OverHosts | None) -> HostsEntry | None:
    """Convert to the entry of a finding."""
    if over is None:
        return None
    return HostsEntry(
        hosts=tuple(
            HostEntry(host=one.site, blocks=one.blocks, point=one.point, low=one.low, high=one.high)
            for one in over.hosts
        ),
        apart=over.apart,
        apart_p=over.apart_p,
        pooled_low=over.pooled.low,
        pooled_high=over.pooled.high,
    )


def machines_entry(machines: Machines | None) -> MachinesEntry | None:
    """Convert to the entry of the file."""
    if machines is None:
        return None
    one = machines.estimate
    return MachinesEntry(
        own=machines.own,
        turned=machines.turned,
        point=one.point,
        low=one.low,
        high=one.high,
        n=one.n,
        confidence=one.confidence,
        why=one.why,
    )
