"""Storage of calibrations: a directory for each machine, with one for each kernel and engine, with the stores.

HOME/calibration/MACHINE/VERSIONS/KIND-NUMBER is the store of one study and KIND-NUMBER.json its result;
`summary.json` beside them holds the figures of all studies, so that a report need not open any store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from tare.calibrate.kinds import KINDS, Kind
from tare.calibrate.outcome import CalibrationStudy, ContrastResult, finished, outcome
from tare.calibrate.summary import Effort, Identity, Summary, summarise
from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.run.resume import StudyState
from tare.sites.layout import make_directory
from tare.store import Store, open_store
from tare.study.values import Strict
from tare.version import __version__

FORMAT = 2
"""Increased when the same records give other results; the stores are then read again. 2: the rate of reads no
longer includes samples after the program's end."""


class StudyResult(Strict):
    """Result of one study. `tare`, `format`: versions that computed it; other versions read the store again."""

    format: int = FORMAT
    tare: str
    observed: tuple[ContrastResult, ...]
    effort: Effort


def study_result(name: str, number: int, path: Path, kinds: Mapping[str, Kind]) -> StudyResult | None:
    """Return the result of the store at `path`; `None` while its study is running, or without a store.

    `name`: the study's kind.
    """
    beside = path.with_name(f"{path.name}.json")
    kept = _kept(beside)
    if kept is not None:
        return kept
    store = _opened(path)
    if store is None or not finished(store.plan, StudyState.from_records(records := store.records())):
        return None
    result = StudyResult(
        tare=__version__,
        observed=outcome(CalibrationStudy(name, number, kinds[name], store.plan.study, records, store.raw)),
        effort=_effort(records),
    )
    write_whole(beside, result.model_dump_json(indent=1) + "\n")
    return result


def write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    scratch = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _kept(path: Path) -> StudyResult | None:
    try:
        kept = StudyResult.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
    return kept if (kept.format, kept.tare) == (FORMAT, __version__) else None


def _opened(path: Path) -> Store | None:
    try:
        return open_store(path)
    except StoreError:
        return None


def _effort(records: tuple[RunRecord, ...]) -> Effort:
    times = [phase for record in records for phase in record.phases]
    return Effort(
        studies=1,
        runs=len(records),
        failed=sum(not record.outcome.ok for record in records),
        machine_s=sum(record.machine_s for record in records),
        finished_at=max((phase.began_at + phase.seconds for phase in times), default=None),
    )


_NAME = re.compile(r"([a-z][a-z-]*)-(\d{4,})")
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Place:
    """The store of one study."""

    kind: str
    number: int
    path: Path


@dataclass(frozen=True)
class Archive:
    """All calibrations below a directory. `kinds`: the kinds that count; other versions may have left others."""

    root: Path
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)

    def directory(self, identity: Identity) -> Path:
        """Return the directory of the studies of a machine under its versions."""
        return self.root / identity.machine_key / identity.versions_key

    def places(self, identity: Identity) -> tuple[Place, ...]:
        """Return every store, ordered by kind and number."""
        directory = self.directory(identity)
        places = [
            Place(match[1], int(match[2]), path) for path, match in _named(directory) if match[1] in self.kinds
        ]
        return tuple(sorted(places, key=lambda place: (place.kind, place.number)))

    def place(self, identity: Identity, kind: str, number: int) -> Place:
        """Return where a study is stored."""
        return Place(kind, number, self.directory(identity) / f"{kind}-{number:04d}")

    def studied(self, place: Place) -> StudyResult | None:
        """Return the result of a study; `None` while it is running."""
        return study_result(place.kind, place.number, place.path, self.kinds)

    def summaries(self, machine_key: str) -> tuple[Summary, ...]:
        """Return the summaries of a machine under all versions, the latest last; unreadable ones are skipped."""
        read = [_read(path) for path in sorted((self.root / machine_key).glob(f"*/{SUMMARY}"))]
        return tuple(
            sorted((each for each in read if each is not None), key=lambda each: each.effort.finished_at or 0.0)
        )

    def spread(self, machine_key: str) -> float | None:
        """Return the spread between blocks from a machine's latest calibration; `None` without one."""
        known = [each.spread for each in self.summaries(machine_key) if each.spread is not None]
        return known[-1] if known else None

    def summarise(self, identity: Identity) -> Summary:
        """Compute the summary from the stores."""
        seen: list[ContrastResult] = []
        effort = Effort(studies=0, runs=0, failed=0, machine_s=0.0, finished_at=None)
        for place in self.places(identity):
            result = self.studied(place)
            if result is not None:
                seen += result.observed
                effort = _plus(effort, result.effort)
        return summarise(identity, seen, effort, __version__)

    def keep(self, summary: Summary) -> None:
        """Write the summary, completely or not at all."""
        directory = self.directory(summary.identity)
        make_directory(directory)
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
