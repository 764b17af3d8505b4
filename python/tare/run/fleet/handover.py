"""Records that a task hands over: files beside their raw files, each complete or absent."""

from __future__ import annotations

import json
from pathlib import Path

from tare.record.run_record import RunRecord
from tare.run.execute import Kept

KEPT = "kept-*.json"


def staged_name(record: RunRecord) -> str:
    """Name of the directory of an attempt's raw files, beside its record and in a store's staging area."""
    return f"{record.run_id}-{record.attempt}"


def hand_over(spool: Path, times: int, kept: Kept) -> None:
    """Write records as one file, atomically; their raw files lie beside it."""
    target = spool / KEPT.replace("*", f"{times:05d}")
    scratch = target.with_suffix(".part")
    scratch.write_text(json.dumps([record.model_dump_json() for record in kept]))
    scratch.rename(target)


def handed_over(spool: Path) -> list[tuple[Path, Kept]]:
    """Return what a task has handed over and nobody has taken yet, in order."""
    found = sorted(spool.glob(KEPT))
    return [
        (path, tuple(RunRecord.model_validate_json(one) for one in json.loads(path.read_text()))) for path in found
    ]
