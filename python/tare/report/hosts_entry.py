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
    apart: float = Field(description="The effect on the second host against that on the first, a fraction.")
    apart_p: float | None = Field(description="Of effects so far apart where none is.")
    pooled_low: float | None = Field(description="The interval as if hosts made no difference, to compare with.")
    pooled_high: float | None


class MachinesEntry(BaseModel):
    """Throughput of all arms with the server on `turned`, relative to the server on `own`."""

    model_config = _WHOLE

    own: str = Field(description="The server's host in the file of sites.")
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
