"""A record as rows and back: parts that repeat from run to run are stored once, by digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from operator import attrgetter
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import RowMapping

from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.measurement import Window
from tare.record.run_record import RunRecord

SHARED = ("host", "engine", "images")
"""Parts of a record that are kept in the table `facts`."""
SETUP = ("study", "scale", "plan_digest", "levels", "settings")
"""Keys that all runs of an arm under one plan have in common: one body of `facts`."""
REFERENCES = (*SHARED, "setup", "effective")
"""Columns of `runs` that hold a digest of `facts`. Up to format 4, the last two are in the record itself."""
_TYPES: Mapping[str, TypeAdapter[Any]] = {
    "host": TypeAdapter(HostFacts),
    "engine": TypeAdapter(EngineFacts),
    "images": TypeAdapter(Mapping[str, ImageFacts | None]),
}
"""Types of the parts that are more than JSON."""
_STAND_IN = {
    "host": '"host":{},',
    "engine": '"engine":null,',
    "images": '"images":{},',
    "setup": '"study":"","scale":"","plan_digest":"","levels":{},"settings":{},',
    "effective": '"effective":null,',
}
"""Placeholders of the parts while the rest of the record is parsed."""

Stored = Mapping[str, Any] | RowMapping
"""A row of `runs`."""

WINDOW = tuple(sorted(each.name for each in fields(Window)))
"""Fields of a window, in the order of a canonical text."""
of_window: Callable[[Window], tuple[float | None, ...]] = attrgetter(*WINDOW)
_WINDOW_TEXT = "{" + ",".join(f'"{name}":%s' for name in WINDOW) + "}"
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Rows:
    """A record as rows: the row of `runs` and, by digest, the rows of `facts` that it refers to."""

    run: Mapping[str, Any]
    facts: Mapping[str, str]


References = tuple[str | None, ...]
"""Digests in the order of `REFERENCES`."""


@dataclass(slots=True)
class _Shared:
    """`parts`: keys of a record that are in `facts`. `stand_in`: their placeholders while the rest is parsed.

    `last`: an earlier record, whose equal parts the next one shares: names of keys are a third of a record's
    memory.
    """

    stand_in: str
    parts: Mapping[str, Any]
    last: RunRecord | None = None


@dataclass(frozen=True)
class Facts:
    """The table `facts`, digest → body. Each body is parsed once, for all records that have it."""

    bodies: Mapping[str, str]
    _trees: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    _typed: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _shared: dict[References, _Shared] = field(default_factory=dict, repr=False, compare=False)

    def shared(self, references: References) -> _Shared:
        """Parts that records with these digests share. Raises as `tree` does."""
        if references not in self._shared:
            named = dict(zip(REFERENCES, references, strict=True))
            away = [part for part in REFERENCES if part in SHARED or named[part] is not None]
            self._shared[references] = _Shared("".join(_STAND_IN[part] for part in away), self._read(named))
        return self._shared[references]

    def tree(self, digest: str) -> dict[str, Any]:
        """A parsed body. Raises `KeyError` if it is missing, `ValueError` if it is not an object."""
        if digest not in self._trees:
            tree = json.loads(self.bodies[digest])
            if not isinstance(tree, dict):
                raise ValueError(f"the fact {digest} is not an object")
            self._trees[digest] = tree
        return self._trees[digest]

    def _read(self, references: Stored) -> Mapping[str, Any]:
        """Return parts as a record has them. Raises as `tree` does, and `ValueError` for a part of another type."""
        parts = _parts(references, self)
        for part, kind in _TYPES.items():
            if (digest := references[part]) is not None:
                if digest not in self._typed:
                    self._typed[digest] = kind.validate_python(parts[part])
                parts[part] = self._typed[digest]
        return parts


def canonical(tree: object) -> str:
    """JSON text that is equal for equal content: sorted keys, no blanks, no NaN."""
    return _CANONICAL.encode(tree)


def digest_of(text: str) -> str:
    """sha256 of a canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()


def stored_digest(row: Stored, facts: Facts) -> str:
    """sha256 over the record as it is stored, without keys that a later tare adds to records."""
    tree: dict[str, Any] = json.loads(row["record"])
    return digest_of(canonical(tree | _parts(row, facts)))


def fault_of(row: Stored, facts: Facts) -> str | None:
    """What is wrong with a record: "is not what was committed"; `None` if nothing.

    The digest does not cover the keys of the row, so that they are compared with the record's. Raises `KeyError`,
    `TypeError` or `ValueError` if the record cannot be read.
    """
    if stored_digest(row, facts) != row["digest"]:
        return "is not what was committed"
    tree = json.loads(row["record"])
    own, keys = (tree.get("run_id"), tree.get("attempt")), (row["run_id"], row["attempt"])
    if own != keys or [type(key) for key in own] != [type(key) for key in keys]:
        return "belongs to another attempt"
    return None


def to_rows(record: RunRecord, committed_at: float, series: Mapping[str, str] | None = None) -> Rows:
    """Split a record into rows. `series`: canonical texts of keys of its measurement, in place of what it has."""
    texts = _texts(record, series or {})
    digest = digest_of(_object(texts))
    parts = {part: texts.pop(part) for part in SHARED}
    parts["setup"] = _object({key: texts.pop(key) for key in SETUP})
    if record.effective is not None:
        parts["effective"] = texts.pop("effective")
    bodies = {part: body for part, body in parts.items() if body != "null"}
    run = {
        "run_id": record.run_id,
        "attempt": record.attempt,
        "run_index": record.index,
        "block": record.block,
        "position": record.position,
        "arm": record.arm,
        "ok": record.outcome.ok,
        "failed_in": record.outcome.failed_in,
        "reason": record.outcome.reason,
        "committed_at": committed_at,
        "digest": digest,
        "record": _object(texts),
        **{part: digest_of(bodies[part]) if part in bodies else None for part in REFERENCES},
    }
    return Rows(run=run, facts={digest_of(body): body for body in bodies.values()})


def _texts(record: RunRecord, series: Mapping[str, str]) -> dict[str, str]:
    """Key of a record → its canonical text. Windows are most of it, so that they are written as columns are."""
    tree = record.model_dump(mode="json", exclude={"measurement": {"windows"}})
    texts = {key: canonical(value) for key, value in tree.items()}
    if record.measurement is not None:
        figures = {key: canonical(value) for key, value in tree["measurement"].items()}
        windows = windows_text(map(of_window, record.measurement.windows))
        texts["measurement"] = _object({**figures, "windows": windows, **series})
    return texts


def _object(texts: Mapping[str, str]) -> str:
    """Canonical text of an object whose keys are plain names."""
    return "{" + ",".join(f'"{key}":{texts[key]}' for key in sorted(texts)) + "}"


def windows_text(windows: Iterable[tuple[float | None, ...]]) -> str:
    """Canonical text of windows, each given as its figures in the order of `WINDOW`."""
    figures = canonical(list(chain.from_iterable(windows)))[1:-1]
    texts = tuple(figures.split(",")) if figures else ()
    return "[" + ",".join([_WINDOW_TEXT] * (len(texts) // len(WINDOW))) % texts + "]"


def from_row(row: Stored, facts: Facts) -> RunRecord:
    """Assemble a record from its rows. Raises `ValueError` if it is invalid, `KeyError` if a part is missing."""
    return put_together(row["record"], tuple(row[part] for part in REFERENCES), facts)


def put_together(record: str | None, references: References, facts: Facts) -> RunRecord:
    """As `from_row`, from the columns `record` and `REFERENCES` of a row, which is faster for many rows."""
    if record is None:
        raise ValueError("a record is missing")
    shared = facts.shared(references)
    read = RunRecord.model_validate_json(f"{{{shared.stand_in}{record.lstrip()[1:]}")
    # The record is not shared yet, and nothing of it is ever changed; `model_copy` would take as long as parsing.
    vars(read).update(shared.parts)
    if shared.last is not None:
        if shared.last.model_fields_set == read.model_fields_set:
            object.__setattr__(read, "__pydantic_fields_set__", shared.last.model_fields_set)
        if vars(shared.last.outcome) == vars(read.outcome):
            vars(read)["outcome"] = shared.last.outcome
    shared.last = read
    return read


def _parts(row: Stored, facts: Facts) -> dict[str, Any]:
    """Keys of the record that are stored in `facts`."""
    parts: dict[str, Any] = {part: None if row[part] is None else facts.tree(row[part]) for part in SHARED}
    if row["setup"] is not None:
        setup = facts.tree(row["setup"])
        parts |= {key: setup[key] for key in SETUP}
    if row["effective"] is not None:
        parts["effective"] = facts.tree(row["effective"])
    return parts
