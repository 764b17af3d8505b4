"""What a running study reports to whoever watches it. Progress displays and logs are observers of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.plan.model import PlannedRun
from tare.protocols.pilot import Choice
from tare.protocols.stopping import Decision
from tare.run.record import Phase, RunRecord, Side


@dataclass(frozen=True)
class Preparing:
    """Something slow that happens before the first run: an image, a data set."""

    what: str


@dataclass(frozen=True)
class RunStarted:
    """A run begins; `attempt` counts from 1. `hosts`: of each node and the client; empty where one host has all."""

    run: PlannedRun
    attempt: int
    hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PhaseStarted:
    """A phase of the current run begins; `expected_s` is how long it should take, where that is known."""

    run: PlannedRun
    phase: Phase
    expected_s: float | None


@dataclass(frozen=True)
class Emulated:
    """A side of the current run turns out to be emulated; `sides`: all of which that is known by now."""

    run: PlannedRun
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class RunEnded:
    """A run is over, for good or ill."""

    record: RunRecord


@dataclass(frozen=True)
class BlockEnded:
    """A block is over, or a study is gone on with: what is known of each arm, and whether that is enough."""

    decision: Decision


@dataclass(frozen=True)
class MeasureChosen:
    """The pilot is over, or was before a study is gone on with: how long the measure phase is from now on."""

    choice: Choice


@dataclass(frozen=True)
class Notice:
    """Something the user should know that is no failure."""

    text: str


@dataclass(frozen=True)
class FromSite:
    """Something that one of several sites reports; `event`: as of a study on one machine."""

    site: str
    event: Preparing | RunStarted | PhaseStarted | Emulated | Notice


class Standing(StrEnum):
    """What one of several sites is at, beside the runs that it reports."""

    IDLE = "idle"
    AWAY = "its worker is away"
    AT_WORK = "at work"
    FAILING = "to be tried again"
    SET_ASIDE = "set aside"


@dataclass(frozen=True)
class SiteStands:
    """A site comes to stand otherwise; each is announced once before the first block. `why`: of a failure."""

    site: str
    standing: Standing
    why: str = ""


Event = (
    Preparing
    | RunStarted
    | PhaseStarted
    | Emulated
    | RunEnded
    | BlockEnded
    | MeasureChosen
    | Notice
    | FromSite
    | SiteStands
)
Observer = Callable[[Event], None]
