"""Observations in the formats of other tools: benchstat's, and OpenMetrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tare.analyze.metrics import METRICS

_NO_WORD = re.compile(r"[^\w.%+-]+")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]+")
_FIXED = frozenset({
    "study", "scale", "block", "position", "index", "run_id", "attempt", "began_at", "measured_s", "arm",
    "baseline", "is_baseline", "control", "metric", "value", "unit", "resolution", "emulated", "site",
})  # fmt: skip


def as_benchstat(frame: pl.DataFrame) -> str:
    """Return a line for each run, for `benchstat -col /arm`: golang.org/design/14313-benchmark-format."""
    lines: list[str] = []
    units: dict[str, str] = {}
    for run in frame.partition_by("run_id", maintain_order=True):
        first = run.row(0, named=True)
        cells = []
        for row in _known(run):
            unit = f"{row['metric']}-{_word(row['unit'])}"
            units[unit] = "higher" if _more_is_better(row["metric"]) else "lower"
            cells.append(f"{row['value']!r} {unit}")
        keys = "".join(f"/{_word(name)}={_word(level)}" for name, level in _levels(first).items())
        if cells:
            title = _word(first["study"]).title().replace("-", "")
            lines.append(f"Benchmark{title}/arm={_word(first['arm'])}{keys} 1 {' '.join(cells)}")
    heads = [f"Unit {unit} better={better}" for unit, better in units.items()]
    return "\n".join([*heads, *lines]) + "\n"


def as_openmetrics(frame: pl.DataFrame) -> str:
    """Return a gauge for each metric with a sample for each run: OpenMetrics 1.0.

    Samples have no time stamps: those of one family must not go back in time, and imported runs have none.
    """
    lines: list[str] = []
    for metric in frame.partition_by("metric", maintain_order=True):
        rows = list(_known(metric))
        if not rows:
            continue
        name = f"tare_{_NO_NAME.sub('_', rows[0]['metric'])}"
        units = ", ".join(dict.fromkeys(str(row["unit"]) for row in rows))
        lines += [f"# TYPE {name} gauge", f"# HELP {name} {_escaped(rows[0]['metric'])}, in {_escaped(units)}"]
        lines += [f"{name}{{{_labels(row)}}} {row['value']!r}" for row in rows]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _known(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows that have a value."""
    yield from frame.drop_nulls("value").iter_rows(named=True)


def _levels(row: Mapping[str, Any]) -> dict[str, str]:
    """Factors and conditions of a run, with its level in each."""
    return {name: str(level) for name, level in row.items() if name not in _FIXED and level is not None}


def _labels(row: Mapping[str, Any]) -> str:
    labels = {name: str(row[name]) for name in ("study", "scale", "arm", "block", "run_id")}
    for name, level in _levels(row).items():
        labels[f"level_{_NO_NAME.sub('_', name)}"] = level
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _word(text: str) -> str:
    """The text without blanks and slashes, which separate cells and keys; a unit's slash is `per`."""
    return _NO_WORD.sub("_", str(text).replace("/", " per ").strip()) or "1"


def _more_is_better(metric: str) -> bool:
    known = METRICS.get(metric)
    return known is not None and known.more_is_better
