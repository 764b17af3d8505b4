"""CPU time by side and component, from one run's sampled stacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import polars as pl

from tare.analyze.explain.components import Table
from tare.monitors import OF_SUT
from tare.monitors.profile.stacks import ProfileFacts, StackProfile
from tare.record.turns import Measured, Turns

_NS = 1e9


class CpuSide(StrEnum):
    """User of CPU time. The first seven make up an operation; the others do not belong to the arm.

    `helper`: a program that carries this arm's bytes between client and server, such as its docker-proxy. `shim`:
    the parents of this arm's containers. `log`: these and the engine's daemons, as far as the arm's log output is
    why they ran longer than beside its baseline; only the comparison tells that. `engine`: the engine's daemons,
    and its programs for other containers; nothing tells what of their work is this arm's.
    """

    SERVER = "server"
    CLIENT = "client"
    HELPER = "helper"
    SHIM = "shim"
    LOG = "log"
    KERNEL = "kernel"
    SOFTIRQ = "softirq"
    ENGINE = "engine"
    TARE = "tare"
    OTHER = "other"


OF_OPERATION = (
    CpuSide.SERVER, CpuSide.CLIENT, CpuSide.HELPER, CpuSide.SHIM, CpuSide.LOG, CpuSide.KERNEL, CpuSide.SOFTIRQ
)  # fmt: skip
_ENGINE = frozenset({"dockerd", "containerd", "podman", "engine"})
"""Daemons, and `engine`: programs of engines that no target names, such as another container's docker-proxy."""
_SHIMS = frozenset({"shim", "client-shim"})
CARRIERS = {
    "proxy": "docker-proxy", "pasta": "pasta", "slirp4netns": "slirp4netns", "rootlessport": "rootlessport"
}  # fmt: skip
"""Target → program that carries the bytes of this arm: only the programs that hold its port have these names."""
_OWN = frozenset({"tare", "tare-probe"})
IDLE = "idle"


def side_of(subject: str) -> CpuSide:
    """Side of a subject, as tare-probe names it: docs/guides/explain.md."""
    if re.match(OF_SUT, subject) or subject == "storage":
        return CpuSide.SERVER
    if subject in CARRIERS:
        return CpuSide.HELPER
    if subject in _SHIMS:
        return CpuSide.SHIM
    if subject in _ENGINE:
        return CpuSide.ENGINE
    if subject in _OWN:
        return CpuSide.TARE
    return CpuSide(subject) if subject in ("client", "kernel", "softirq") else CpuSide.OTHER


@dataclass(frozen=True)
class Sampled:
    """CPU seconds of one run's measure phase.

    `cpu_s`: by (side, component). `stacks`: by (side, collapsed stack that begins with the command). `carriers`:
    of `CpuSide.HELPER`, by program. `seconds`: sampled part of the phase. `lost`: share of samples that were lost
    for lack of room. `idle_s`: idle CPU seconds.
    """

    seconds: float
    cpu_s: Mapping[tuple[CpuSide, str], float]
    stacks: Mapping[tuple[CpuSide, str], float]
    lost: float
    idle_s: float
    cpus: int
    without_symbols: str | None = None
    carriers: Mapping[str, float] = field(default_factory=dict)

    def of_side(self, side: CpuSide) -> float:
        """CPU seconds of one side."""
        return sum(used for (of, _), used in self.cpu_s.items() if of is side)


def sampled(profile: StackProfile, phase: Measured, table: Table) -> Sampled:
    """Count samples within the phase; a slot at its edge counts by the share that lies within.

    Over turns, slots are weighted as intervals of counters are (`Turns.weights`); a side or a component may then be
    a little below zero. Nothing was sampled if slots are too long for the turns.
    """
    facts = profile.facts
    seconds, share = _shares(facts, phase)
    counted = (
        profile.rows.join(share, on="at_ns", how="inner")
        .with_columns((pl.col("samples") * pl.col("share")).alias("weight"))
        .group_by("subject", "command", "stack")
        .agg(pl.col("weight").sum())
        .filter(pl.col("weight") != 0)
        .sort("subject", "command", "stack")
    )
    by_component: dict[tuple[CpuSide, str], float] = {}
    by_stack: dict[tuple[CpuSide, str], float] = {}
    carriers: dict[str, float] = {}
    idle_s, each_s = 0.0, facts.period_ns / _NS
    for subject, command, stack, weight in counted.iter_rows():
        used = weight * each_s
        if subject == IDLE:
            idle_s += used
            continue
        side = side_of(subject)
        if subject in CARRIERS:
            carriers[CARRIERS[subject]] = carriers.get(CARRIERS[subject], 0.0) + used
        component = (side, table.of_stack(stack))
        by_component[component] = by_component.get(component, 0.0) + used
        line = (side, f"{command or subject};{stack}".rstrip(";"))
        if used > 0:
            by_stack[line] = by_stack.get(line, 0.0) + used
    taken = facts.samples + facts.lost
    return Sampled(
        seconds=seconds,
        cpu_s=by_component,
        stacks=by_stack,
        lost=facts.lost / taken if taken else 0.0,
        idle_s=idle_s,
        cpus=facts.cpus,
        without_symbols=facts.kernel_symbols_missing,
        carriers=carriers,
    )


def _shares(facts: ProfileFacts, phase: Measured) -> tuple[float, pl.DataFrame]:
    """Sampled seconds of a phase; and of each slot, `at_ns` and the share of its samples that counts."""
    at = np.arange(facts.began_ns, facts.ended_ns, facts.slot_ns, dtype=np.int64)
    from_ns = at.astype(float)
    to_ns = np.minimum(from_ns + facts.slot_ns, facts.ended_ns)
    if isinstance(phase, Turns):
        weights = phase.weights(from_ns, to_ns)
        seconds, share = (0.0, np.zeros(len(at))) if weights is None else (phase.seconds, weights)
    else:
        began, ended = max(phase.began_s * _NS, facts.began_ns), min(phase.ended_s * _NS, facts.ended_ns)
        seconds = max(ended - began, 0.0) / _NS
        share = np.clip((np.minimum(to_ns, ended) - np.maximum(from_ns, began)) / (to_ns - from_ns), 0.0, 1.0)
    return seconds, pl.DataFrame({"at_ns": at, "share": share})


def between_hosts(server: Sampled, client: Sampled, *, one: bool, own: CpuSide = CpuSide.CLIENT) -> Sampled:
    """Combine the samples of two hosts: the client's or a node's host adds its CPUs and what ran on them.

    Its samples are scaled to the sampled time of the server's host. `one`: both hosts are one machine, which both
    profiles cover; then only the time of the side on that host, `own`, is added, and taken from "other" on the
    server's host.
    """
    kept = server.seconds * (1 - server.lost)
    scale = kept / (client.seconds * (1 - client.lost)) if client.seconds > 0 and client.lost < 1 else 0.0
    sides = (own,) if one else tuple(CpuSide)
    cpu_s, stacks, carriers = dict(server.cpu_s), dict(server.stacks), dict(server.carriers)
    for (side, component), used in client.cpu_s.items():
        if side in sides:
            cpu_s[side, component] = cpu_s.get((side, component), 0.0) + used * scale
            if one:
                other = (CpuSide.OTHER, component)
                cpu_s[other] = max(0.0, cpu_s.get(other, 0.0) - used * scale)
    for (side, stack), used in client.stacks.items():
        if side in sides:
            stacks[side, stack] = stacks.get((side, stack), 0.0) + used * scale
    if CpuSide.HELPER in sides:
        for program, used in client.carriers.items():
            carriers[program] = carriers.get(program, 0.0) + used * scale
    return replace(
        server,
        cpu_s=cpu_s,
        stacks=stacks,
        carriers=carriers,
        idle_s=server.idle_s if one else server.idle_s + client.idle_s * scale,
        cpus=server.cpus if one else server.cpus + client.cpus,
    )
