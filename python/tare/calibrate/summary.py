"""The calibration of a machine as one value, which is stored and quoted, and the identity of that machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from tare.calibrate.outcome import ContrastResult
from tare.calibrate.pooled import (
    MINUTES,
    RUNS_A_BLOCK,
    Injected,
    Share,
    Smallest,
    block_spread,
    false_positives,
    injected,
    run_seconds,
    smallest,
)
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord
from tare.study.values import Strict

_KEY_DIGITS = 16
_GIB = 1 << 30


class Identity(Strict):
    """Identity of a machine by its hardware, whatever is booted on it, and the versions that run there.

    `memory_gib` is rounded: kernels reserve slightly different amounts. `client`: for a pair of hosts, the client's
    identity, the rest being the server's. `one_kernel`: both hosts are one machine by their boot id.
    """

    cpu_model: str | None
    cpu_count: int | None
    memory_gib: int | None
    kernel: str | None
    engine: str | None
    engine_version: str | None
    client: Identity | None = None
    one_kernel: bool = False

    @property
    def machine_key(self) -> str:
        """Key of the machine; for a pair, of both hosts, the server's first, and whether they are one machine."""
        own = _key(self.cpu_model, self.cpu_count, self.memory_gib)
        if self.client is None:
            return own
        return f"{own}-{self.client.machine_key}{'-one-kernel' if self.one_kernel else ''}"

    @property
    def versions_key(self) -> str:
        """Key of kernel and engine; for a pair, of both hosts."""
        own = _key(self.kernel, self.engine, self.engine_version)
        return own if self.client is None else f"{own}-{self.client.versions_key}"


def identity_of_run(record: RunRecord) -> Identity:
    """Return the identity of the machine, or pair of hosts, of a run."""
    server = identity_of(record.host, record.engine)
    if record.client_host is None:
        return server
    return pair_of(
        server,
        identity_of(record.client_host, record.client_engine),
        one_kernel=record.host.boot_id == record.client_host.boot_id,
    )


def pair_of(server: Identity, client: Identity, *, one_kernel: bool) -> Identity:
    """Combine two hosts into one identity: calibrations of pairs are stored beside those of machines."""
    return server.model_copy(update={"client": client, "one_kernel": one_kernel})


def identity_of(host: HostFacts, engine: EngineFacts | None) -> Identity:
    """Make the identity from the facts in a run's record."""
    memory = host.memory_total_bytes
    return Identity(
        cpu_model=host.cpu_model,
        cpu_count=host.cpu_count,
        memory_gib=None if memory is None else round(memory / _GIB),
        kernel=host.kernel,
        engine=engine and engine.engine,
        engine_version=engine and engine.engine_version,
    )


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_KEY_DIGITS]


class Effort(Strict):
    """What the calibration has cost. `finished_at`: end of the last study, seconds since the epoch."""

    studies: int
    runs: int
    failed: int
    machine_s: float
    finished_at: float | None


class Summary(Strict):
    """A calibration. `by_deployment`: false positives of bare servers and of servers in containers.

    `spread`: standard deviation of the log ratio of two instances of the same arm between blocks; `block_s`:
    seconds of a block of three runs.
    """

    format: Literal[1] = 1
    tare: str
    identity: Identity
    effort: Effort
    false_positives: Share
    by_deployment: Mapping[str, Share]
    injections: tuple[Injected, ...]
    spread: float | None
    block_s: float | None
    smallest: tuple[Smallest, ...]
    observed: tuple[ContrastResult, ...]


def summarise(identity: Identity, seen: Sequence[ContrastResult], effort: Effort, version: str) -> Summary:
    """Compute all figures from the results of the studies."""
    names = dict.fromkeys(each.deployment for each in seen if each.injection is None)
    spread, run_s = block_spread(seen), run_seconds(seen)
    block_s = None if run_s is None else RUNS_A_BLOCK * run_s
    known = spread is not None and block_s is not None
    return Summary(
        tare=version,
        identity=identity,
        effort=effort,
        false_positives=false_positives(seen),
        by_deployment={name: false_positives([each for each in seen if each.deployment == name]) for name in names},
        injections=tuple(
            injected(seen, name) for name in dict.fromkeys(each.injection for each in seen) if name is not None
        ),
        spread=spread,
        block_s=block_s,
        smallest=tuple(smallest(spread or 0.0, block_s or 1.0, minutes) for minutes in MINUTES) if known else (),
        observed=tuple(seen),
    )
