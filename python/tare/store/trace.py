"""A recording of tare-probe in memory; docs/reference/trace-format.md documents every table and column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from tare.errors import StoreError
from tare.parquet import must_hold, read_parquet
from tare.plain_files import must_be_regular

VERSION = 1
"""Version of the trace's format, as `header.trace_version` states it."""

TRACE_HEAD = "trace.json"
"""A directory without this file holds no recording."""
_COUNTS = ("cpus", "page_bytes", "period_ns")
_NEEDED = (*_COUNTS, "ticks", "started_monotonic_ns")
_TEXTS = ("name", "kind", "detail", "sources", "what")
_KNOWN = ("name", "tick", "woke_ns")
"""Columns that are never null."""
_KNOWN_OF = {"event": ("tick", "at_ns", "what")}
"""Table → its own such columns: an event of a target that was not found has no name."""
_NOT_BY_PROBE = "tare-probe did not write it like this"


@dataclass(frozen=True)
class Trace:
    """Tables as they were written; a table without rows is absent."""

    header: Mapping[str, Any]
    quanta: Mapping[str, Mapping[str, int]]
    """table → column → smallest step of a time counter, in the column's own unit."""
    complete: bool
    tables: Mapping[str, pl.DataFrame]

    @property
    def cpus(self) -> int:
        """Number of CPUs of the machine."""
        return int(self.header["cpus"])

    @property
    def user_hz(self) -> int:
        """Ticks per second in which /proc prints CPU time."""
        return int(self.header["ticks"]["user_hz"])

    @property
    def page_bytes(self) -> int:
        """Size of a page of the machine's memory."""
        return int(self.header["page_bytes"])

    @property
    def period_ns(self) -> int:
        """Time between two ticks of the probe."""
        return int(self.header["period_ns"])

    def between(self, from_ns: int, to_ns: int) -> Trace:
        """The ticks between two times of CLOCK_MONOTONIC."""
        if "tick" not in self.tables:
            return replace(self, tables={})  # nothing was sampled
        ticks = self.tables["tick"].filter(pl.col("woke_ns").is_between(from_ns, to_ns)).select("tick")
        kept = {
            name: table.join(ticks, on="tick", how="semi") if "tick" in table.columns else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=kept)

    def table(self, name: str) -> pl.DataFrame | None:
        """A table; `None` if the recording has no such rows."""
        return self.tables.get(name)

    def quantum(self, table: str, column: str) -> int | None:
        """Smallest step of a counter, in the column's own unit; `None` for counters without a step."""
        return self.quanta.get(table, {}).get(column)


def is_trace(path: Path) -> bool:
    """Whether a directory holds a recording."""
    return (path / TRACE_HEAD).is_file()


def read_trace(path: Path) -> Trace:
    """Read a recording. Raises `StoreError` if there is none, or if it is damaged or of another format."""
    for file in (path / TRACE_HEAD, *path.glob("*.parquet")):
        must_be_regular(file)
    try:
        head = json.loads((path / "trace.json").read_text())
    except FileNotFoundError as error:
        raise StoreError(f"{path} contains no trace", hint=_what_makes_one(path)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path / 'trace.json'} cannot be read: {error}") from error
    header, quanta = _header(path / TRACE_HEAD, head), _quanta(path / TRACE_HEAD, head)
    tables = _tables(path)
    counted = head.get("rows", {})
    if not isinstance(counted, dict):
        raise StoreError(f"{path / TRACE_HEAD} names no rows", hint=_NOT_BY_PROBE)
    for name, rows in counted.items():
        if (there := len(tables.get(name, ()))) != rows:
            hint = "copy the directory again, with all its files"
            raise StoreError(
                f"{path / name}.parquet has {there} of the {rows} rows that trace.json lists", hint=hint
            )
    return Trace(header, quanta, bool(head.get("complete")), tables)


def _header(file: Path, head: Any) -> Mapping[str, Any]:
    header = head.get("header") if isinstance(head, dict) else None
    if not isinstance(header, dict):
        raise StoreError(f"{file} has no header", hint=_NOT_BY_PROBE)
    version = header.get("trace_version")
    if version != VERSION:
        raise StoreError(f"{file.parent} is a trace of version {version}, this tare reads version {VERSION}")
    if lacks := [key for key in _NEEDED if key not in header]:
        raise StoreError(f"{file} has no {lacks[0]!r} in its header", hint="tare-probe writes it")
    ticks, began_ns = header["ticks"], header["started_monotonic_ns"]
    of_ticks = [ticks.get("user_hz")] if isinstance(ticks, dict) else [None]
    if not _are_counts([*of_ticks, *(header[key] for key in _COUNTS)]) or not isinstance(began_ns, int):
        raise StoreError(f"{file} has no whole numbers above 0 in its header", hint=_NOT_BY_PROBE)
    return header


def _quanta(file: Path, head: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    quanta = head.get("quanta", {})
    tables = quanta.values() if isinstance(quanta, dict) else [None]
    if not all(isinstance(steps, dict) and _are_counts(steps.values()) for steps in tables):
        raise StoreError(f"{file} has no whole numbers above 0 as quanta", hint=_NOT_BY_PROBE)
    return dict(quanta)


def _tables(path: Path) -> dict[str, pl.DataFrame]:
    tables, file = dict[str, pl.DataFrame](), path
    try:
        for file in sorted(path.glob("*.parquet")):
            tables[file.stem] = _whole(read_parquet(file))
            must_hold(tables[file.stem], _TEXTS, _KNOWN_OF.get(file.stem, _KNOWN))
    except (OSError, PolarsError) as error:
        hint = "`tare-probe convert DIR` rebuilds its tables if the journal still exists"
        raise StoreError(f"the trace {file} cannot be read: {error}", hint=hint) from error
    return tables


def _are_counts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int) and value > 0 for value in values)


def _what_makes_one(path: Path) -> str:
    if (path / "journal.tare").is_file():
        return f"`tare-probe convert {path}` makes it from the existing journal"
    return "`tare-probe record --out DIR` writes one; for a run of a study, add --store STORE"


def _whole(table: pl.DataFrame) -> pl.DataFrame:
    """Convert names to plain text, so that tables join and compare without a shared dictionary."""
    return table.with_columns(pl.col(pl.Categorical).cast(pl.String))
