"""Events that a running study reports; progress displays and logs observe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.plan.model import PlannedRun
from tare.protocols.stopping import Decision
from tare.record.observation import Side
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import Phase, RunRecord


@dataclass(frozen=True)
class Preparing:
    """A slow step before the first run starts: an image or a data set is prepared."""

    what: str


@dataclass(frozen=True)
class RunStarted:
    """A run starts; `attempt` counts from 1. `hosts`: of each node and the client; empty on a single host."""

    run: PlannedRun
    attempt: int
    hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PhaseStarted:
    """A phase of the current run starts; `expected_s`: how long it should take, if known."""

    run: PlannedRun
    phase: Phase
    expected_s: float | None


@dataclass(frozen=True)
class Emulated:
    """A side of the current run turned out to be emulated; `sides`: all emulated sides known by now."""

    run: PlannedRun
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class RunEnded:
    """A run has ended, successfully or not."""

    record: RunRecord


@dataclass(frozen=True)
class BlockEnded:
    """A block has ended, or a study resumes: what is known of each arm, and whether that is enough."""

    decision: Decision


@dataclass(frozen=True)
class MeasureChosen:
    """The pilot has ended, or had before the study resumed: lengths of what is measured from now on."""

    choice: Choice | TurnChoice


@dataclass(frozen=True)
class Notice:
    """A remark for the user that is no failure."""

    text: str


@dataclass(frozen=True)
class FromSite:
    """An event from one of several sites; `event`: as for a study on one machine."""

    site: str
    event: Preparing | RunStarted | PhaseStarted | Emulated | Notice


class Standing(StrEnum):
    """State of one of several sites, beside the runs that it reports."""

    IDLE = "idle"
    AWAY = "its worker is away"
    AT_WORK = "at work"
    FAILING = "to be tried again"
    SET_ASIDE = "set aside"


@dataclass(frozen=True)
class SiteStands:
    """The state of a site has changed; each is announced before the first block. `why`: of a failure."""

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
