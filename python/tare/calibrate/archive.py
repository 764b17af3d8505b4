"""Where calibrations are kept: a directory a machine, in it one for each kernel and engine, in it the stores.

HOME/calibration/MACHINE/VERSIONS/KIND-NUMBER is the store of one study and KIND-NUMBER.json what it has shown;
`summary.json` beside them holds the figures of all of them, so that a report need not open any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from tare import __version__
from tare.calibrate.kinds import KINDS, Kind
from tare.calibrate.machine import Identity
from tare.calibrate.outcome import Observed
from tare.calibrate.studied import Studied, studied, write_whole
from tare.calibrate.summary import Effort, Summary, summarise

_NAME = re.compile(r"([a-z]+)-(\d{4,})")
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Place:
    """The store of one study."""

    kind: str
    number: int
    path: Path


@dataclass(frozen=True)
class Archive:
    """All calibrations below a directory. `kinds`: those that count; others may lie there from other versions."""

    root: Path
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)

    def directory(self, identity: Identity) -> Path:
        """Where the studies of a machine under its versions lie."""
        return self.root / identity.machine_key / identity.versions_key

    def places(self, identity: Identity) -> tuple[Place, ...]:
        """Every store, by kind and number."""
        directory = self.directory(identity)
        found = [
            Place(match[1], int(match[2]), path) for path, match in _named(directory) if match[1] in self.kinds
        ]
        return tuple(sorted(found, key=lambda place: (place.kind, place.number)))

    def place(self, identity: Identity, kind: str, number: int) -> Place:
        """Where a study is to go."""
        return Place(kind, number, self.directory(identity) / f"{kind}-{number:04d}")

    def studied(self, place: Place) -> Studied | None:
        """What a study has shown; `None` while it is under way."""
        return studied(place.kind, place.number, place.path, self.kinds)

    def summaries(self, machine_key: str) -> tuple[Summary, ...]:
        """What is kept of a machine, under whatever versions, the latest last; unreadable ones are passed over."""
        read = [_read(path) for path in sorted((self.root / machine_key).glob(f"*/{SUMMARY}"))]
        return tuple(
            sorted((each for each in read if each is not None), key=lambda each: each.effort.finished_at or 0.0)
        )

    def summarise(self, identity: Identity) -> Summary:
        """From the stores themselves."""
        seen: list[Observed] = []
        effort = Effort(studies=0, runs=0, failed=0, machine_s=0.0, finished_at=None)
        for place in self.places(identity):
            found = self.studied(place)
            if found is not None:
                seen += found.observed
                effort = _plus(effort, found.effort)
        return summarise(identity, seen, effort, __version__)

    def keep(self, summary: Summary) -> None:
        """Write the figures, whole or not at all."""
        directory = self.directory(summary.identity)
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / SUMMARY, summary.model_dump_json(indent=1) + "\n")


def _plus(one: Effort, other: Effort) -> Effort:
    ended = [at for at in (one.finished_at, other.finished_at) if at is not None]
    return Effort(
        studies=one.studies + other.studies,
        runs=one.runs + other.runs,
        failed=one.failed + other.failed,
        machine_s=one.machine_s + other.machine_s,
        finished_at=max(ended, default=None),
    )


def _named(directory: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in directory.iterdir() if directory.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            yield path, match


def _read(path: Path) -> Summary | None:
    try:
        return Summary.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
