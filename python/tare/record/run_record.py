"""The record of a run: everything known of it, committed whole or not at all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, ValidatorFunctionWrapHandler, WrapValidator

from tare.record.between import Between
from tare.record.chronicle import ServerReport
from tare.record.duet import DuetTimes
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.import_source import ImportSource
from tare.record.loaded_data import LoadedData
from tare.record.measurement import Measurement
from tare.record.monitor import MonitorFacts
from tare.record.network_path import NetworkPath
from tare.record.node import NodeFacts
from tare.record.observation import Parity, Side
from tare.record.pilot import Choice, TurnChoice
from tare.record.turns import Measured, Rotation, turns_of
from tare.record.usage import Usage
from tare.study.values import Strict

FORMAT = 4
"""2 added `usage`, `parity.sut_after` and `outcome.refused`; 3 `monitors`, `phases[].monotonic_s`, `duet` and, in
`usage`, the SUT's I/O; 4 `emulated`. Older records lack them."""
NOTHING = "it had nothing to watch"
"""Why a monitor is absent that was not started, as the record says it."""


def to_tree(value: Any) -> dict[str, Any]:
    """Convert a dataclass to plain JSON values, as a store returns them (tuples become lists); no NaN.

    Raises `TypeError` for values that are neither JSON nor made of dataclasses and mappings.
    """
    return dict(json.loads(json.dumps(_members(value), default=_members, allow_nan=False)))


def _members(value: Any) -> dict[str, Any]:
    """Convert one level of a value unknown to JSON (`dataclasses.asdict` copies every number of a histogram)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a record cannot contain {type(value).__name__}: only JSON, dataclasses and mappings ({value!r:.60})"
    )


class Phase(StrEnum):
    """The phases of a run, in order."""

    PROVISION = "provision"
    LOAD = "load"
    WARM_UP = "warm-up"
    MEASURE = "measure"
    COOL_DOWN = "cool-down"
    COLLECT = "collect"
    TEARDOWN = "teardown"


TOGETHER = frozenset({Phase.WARM_UP, Phase.MEASURE, Phase.COOL_DOWN})
"""Phases that the runs of a duet or of a generation go through at the same time."""


class PhaseTime(Strict):
    """When a phase began (wall clock, seconds since the epoch) and how long it took (monotonic clock)."""

    phase: Phase
    began_at: float
    seconds: float
    monotonic_s: float | None = None
    """When the phase began on the host's CLOCK_MONOTONIC, which traces use too."""


class Outcome(Strict):
    """Whether the run is good, or why it must not be used."""

    ok: bool
    reason: str | None = None
    failed_in: Phase | None = None
    refused: bool = False
    """The run differs from those that it is compared with; another attempt would differ too."""


_UNKNOWN_HOST = HostFacts()


def _facts_of_host(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Read facts; a store leaves them out at first, and making 80 fields of nothing takes a while."""
    return _UNKNOWN_HOST if value == {} else read(value)


class RunRecord(Strict):
    """One run as it happened. A value that could not be read is `None`, never zero.

    Keys that a type does not have are ignored: a newer tare wrote them. docs/reference/record.md documents the keys
    of parts that are JSON trees.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=False)
    """Types of parts have no configuration of their own, and are read by this one; 3.0 is read as 3."""

    format: int = FORMAT
    run_id: str
    attempt: int
    study: str
    scale: str
    plan_digest: str
    block: int
    position: int
    index: int
    arm: str
    levels: Mapping[str, str]
    settings: Mapping[str, Any]
    seed: int
    phases: tuple[PhaseTime, ...]
    site: str | None = None
    """Name of the site in the sites file; `None` for a run on tare's own machine."""
    host: Annotated[HostFacts, WrapValidator(_facts_of_host)]
    engine: EngineFacts | None
    client_host: HostFacts | None = None
    """Facts of the client's host, in the form of `host`; `None` where client and SUT share a host."""
    client_engine: EngineFacts | None = None
    """Facts of the engine on the client's host."""
    images: Mapping[str, ImageFacts | None]
    """`sut` and `client`; `None` for a workload without a database."""
    emulated: tuple[Side, ...] = ()
    """Sides that ran on an emulated CPU, as their instances reported; before format 4, none could."""
    snapshot: LoadedData | None = None
    """The snapshot that the run's data were copied from."""
    effective: Mapping[str, str] | None
    """Settings read back from the server."""
    parity: Parity
    """What was in force around both sides."""
    between: Between | None = None
    """Measurements between the hosts; `None` on a single host."""
    path: NetworkPath | None
    """How the client's traffic reached the server, from the sockets of both sides."""
    nodes: Mapping[str, NodeFacts] | None = None
    """The nodes of a SUT of several, by name (`sut-1`, …); `None` for a single server."""
    usage: Usage | None = None
    """Use of CPUs and disks in the measure phase; `None` if the run did not get that far."""
    monitors: Mapping[str, MonitorFacts] | None = None
    """Monitor → what it reports about itself."""
    chronicle: ServerReport | None = None
    """The server's report of its own work, such as compactions."""
    pilot: Choice | TurnChoice | None = None
    """The pilot's choice of the measure phase or of turns; `None` in a pilot, or if the study sets the lengths."""
    measurement: Measurement | None
    plugins: Mapping[str, Mapping[str, str]] | None = None
    """Third-party plug-in (`database tiny`) → `package` and `version`; `None` if there is none."""
    duet: DuetTimes | None = None
    """For a run beside another arm: its partner, and both halves; `None` for a run alone."""
    rotation: Rotation | None = None
    """The turns of a run that took turns with the other arms of its generation; `None` for a run alone."""
    continues: str | None = None
    """The run whose server and data this run continued on, as the next stage; `None` if it started its own."""
    raw: tuple[str, ...]
    """Names of the raw files stored with the record."""
    imported: ImportSource | None = None
    """Source of an imported run."""
    notices: tuple[str, ...] = ()
    """Problems that did not void the run (a failed teardown step, say), one sentence each."""
    outcome: Outcome

    @property
    def machine_s(self) -> float:
        """Machine time of the run in seconds; its share of the phases that other runs shared."""
        return sum(self.share_of(time) for time in self.phases)

    @property
    def measured_time(self) -> Measured | None:
        """The time that the figures of `usage` are of: the measure phase, or the arm's turns; `None` if unknown."""
        if self.usage is None:
            return None
        return self.usage.phase if self.usage.turns_s is None else turns_of(self.rotation)

    @property
    def is_swapped(self) -> bool:
        """Whether server and client ran on the host that the sites file gives to the other."""
        return self.between is not None and self.between.swapped

    def share_of(self, time: PhaseTime) -> float:
        """Return the seconds of a phase that count as this run's."""
        if time.phase not in TOGETHER:
            return time.seconds
        return time.seconds / sharing(self.duet, self.rotation and self.rotation.arms)


def sharing(duet: DuetTimes | None, arms: int | None) -> int:
    """Return how many runs went through `TOGETHER` at once; `arms`: of a rotation."""
    if arms is not None:
        return arms
    return 1 if duet is None else 2
