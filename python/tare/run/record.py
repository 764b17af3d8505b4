"""The record of a run: everything known of it, committed whole or not at all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from tare.study.values import Strict

FORMAT = 4
"""2 added `usage`, `parity.sut_after` and `outcome.refused`, 3 `monitors`, `phases[].monotonic_s`, `duet` and, in
`usage`, the SUT's I/O, 4 `emulated`; older records have none of them."""
NOTHING = "it had nothing to watch"
"""Why a monitor is absent that was not started: its record says so."""
Side = Literal["sut", "client"]


def to_tree(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON values, just as a store gives them back (tuples are lists); no NaN.

    Raises `TypeError` for anything that is neither JSON nor made of dataclasses and mappings.
    """
    return dict(json.loads(json.dumps(_members(value), default=_members, allow_nan=False)))


def _members(value: Any) -> dict[str, Any]:
    """One level of what JSON does not know: `dataclasses.asdict` copies every number of a histogram first."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a record holds no {type(value).__name__}: only JSON, dataclasses and mappings ({value!r:.60})"
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
"""Phases that the two runs of a duet go through at the same time."""


class PhaseTime(Strict):
    """When a phase began and how long it took: wall clock (seconds since the epoch), monotonic duration."""

    phase: Phase
    began_at: float
    seconds: float
    monotonic_s: float | None = None
    """When it began on the host's CLOCK_MONOTONIC, on which traces lie too."""


class Outcome(Strict):
    """`ok`, or why the run must not be used."""

    ok: bool
    reason: str | None = None
    failed_in: Phase | None = None
    refused: bool = False
    """It differs from the runs that it is to be compared with: another attempt would too."""


class RunRecord(Strict):
    """One run as it happened.

    `measurement`, `parity`, `path`, `host`, `engine`, `images`, `effective` are JSON trees whose keys are
    documented in docs/reference/store.md; what could not be read is `None`, never zero.
    """

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
    """Name of the site in the file of sites; `None` where tare ran on its own machine alone."""
    host: Mapping[str, Any]
    engine: Mapping[str, Any] | None
    client_host: Mapping[str, Any] | None = None
    """Facts of the client's host, as `host`; `None` where it is the SUT's."""
    client_engine: Mapping[str, Any] | None = None
    """The same of its engine."""
    images: Mapping[str, Any]
    """`sut` and `client`: reference, digest, engine id, packages."""
    emulated: tuple[Side, ...] = ()
    """Which sides ran on an emulated CPU, as their instances reported; before format 4 none could."""
    snapshot: Mapping[str, Any] | None = None
    """Which loaded data the run started from a copy of, and by which deployments it was loaded."""
    effective: Mapping[str, str] | None
    """Settings read back from the server."""
    parity: Mapping[str, Any]
    """`sut` and `client`: the `Observation` of each; `sut_after`: that of the SUT after the measure phase."""
    between: Mapping[str, Any] | None = None
    """What was measured between two hosts: a `run.between.sounding.Between`; `None` where one plays both parts."""
    path: Mapping[str, Any] | None
    """How the client's traffic reached the server, as the sockets of both sides tell."""
    nodes: Mapping[str, Mapping[str, Any]] | None = None
    """Of a SUT of several, node → `address`, `effective`, `parity`, `path`, `parity_after`, `chronicle`.

    `effective`, `parity` and `path` are those of the first, and the others' are known to be like them.
    """
    usage: Mapping[str, Any] | None = None
    """CPU time and clocks over the measure phase: a `run.usage.Usage`."""
    monitors: Mapping[str, Any] | None = None
    """Monitor → what it reports on itself: docs/reference/monitors.md."""
    chronicle: Mapping[str, Any] | None = None
    """What the server reports of its own work: `events` (compactions), `tables`, `pools`, `dropped`.

    Of several nodes their `events`, each with its `node`; the rest is each node's own, and in `nodes`.
    """
    pilot: Mapping[str, Any] | None = None
    """The choice by which its measure phase is as long as it is: a `protocols.pilot.Choice`."""
    measurement: Mapping[str, Any] | None
    plugins: Mapping[str, Mapping[str, str]] | None = None
    """Plug-in of another package (`database tiny`) → `package` and `version`; `None` where there is none."""
    duet: Mapping[str, Any] | None = None
    """Where another arm ran at once: `partner`, `cpus`, what came of the two `halves`; `None` for a run alone."""
    continues: str | None = None
    """The run whose server and data it went on with, as the next stage; `None` where it began its own."""
    raw: tuple[str, ...]
    """Names of the raw files kept beside the record."""
    imported: Mapping[str, Any] | None = None
    """Where the run comes from that somebody else has made: `origin`, `parser`, `file`, `sha256`, `repetition`."""
    notices: tuple[str, ...] = ()
    """What went wrong without voiding the run (a teardown step, say), a sentence each."""
    outcome: Outcome

    @property
    def machine_s(self) -> float:
        """Machine time that it took; of phases in which the other run of a duet was under way, half."""
        return sum(self.share_of(time) for time in self.phases)

    def share_of(self, time: PhaseTime) -> float:
        """Part of a phase's seconds that is this run's."""
        return time.seconds / 2 if self.duet is not None and time.phase in TOGETHER else time.seconds
