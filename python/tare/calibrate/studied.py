"""A finished study of a calibration: what it has shown and cost, read from its store once and kept beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from tare import __version__
from tare.calibrate.kinds import Kind
from tare.calibrate.outcome import Made, Observed, finished, outcome
from tare.calibrate.summary import Effort
from tare.errors import StoreError
from tare.run.record import RunRecord
from tare.run.resume import Done
from tare.store import Store, open_store
from tare.study.values import Strict

FORMAT = 2
"""Raised when the same records begin to say something else; the stores are then read again. 2: the rate of reads is
no longer that of samples after the program's end, too."""


class Studied(Strict):
    """`tare`, `format`: by what it was read; another version reads the store again."""

    format: int = FORMAT
    tare: str
    observed: tuple[Observed, ...]
    effort: Effort


def studied(name: str, number: int, path: Path, kinds: Mapping[str, Kind]) -> Studied | None:
    """What the store at `path` says; `None` while its study is under way, or where it has none. `name`: a kind."""
    beside = path.with_name(f"{path.name}.json")
    kept = _kept(beside)
    if kept is not None:
        return kept
    store = _opened(path)
    if store is None or not finished(store.plan, Done.of(records := store.records())):
        return None
    found = Studied(
        tare=__version__,
        observed=outcome(Made(name, number, kinds[name], store.plan.study, records, store.raw)),
        effort=_effort(records),
    )
    write_whole(beside, found.model_dump_json(indent=1) + "\n")
    return found


def write_whole(path: Path, text: str) -> None:
    """All of it or nothing."""
    scratch = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _kept(path: Path) -> Studied | None:
    try:
        kept = Studied.model_validate_json(path.read_text(encoding="utf-8"))
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
