"""The table of `make bench-storage`: every storage against a directory of the host, from the study's own store.

    python -m bench.storage.table STORE [--markdown FILE]

A cell is the storage's figure relative to `bind` in the same block, with its 95 % interval: the median latency of
an fsync (more is worse), else throughput. The row of `bind` has what it did itself, the median of its runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.analyze.analysis import Analysis, analyze
from tare.analyze.estimate import Finding
from tare.errors import TareError
from tare.run.emulated import MARK, EmulatedArms, emulated_arms, mark_of, marked
from tare.store.read import open_store
from tare.study.model import Study

_BASELINE = "bind"


@dataclass(frozen=True)
class Column:
    """One kind of work, and the metric that is shown of it."""

    work: str
    title: str
    metric: str
    unit: str


COLUMNS = (
    Column("fsync", "fsync, median", "fsync_latency_p50", "ms"),
    Column("random-read", "random read 16 kB", "throughput", "/s"),
    Column("random-write", "random write 16 kB", "throughput", "/s"),
    Column("sequential-read", "sequential read", "throughput", "MiB/s"),
    Column("sequential-write", "sequential write", "throughput", "MiB/s"),
)
"""Sequential requests are of 1 MiB, so that requests a second are MiB a second."""


def rows(study: Study, analysis: Analysis, emulated: EmulatedArms) -> list[list[str]]:
    """A row a storage, in the study's order; one with a run on an emulated CPU is marked."""
    names = {(arm.levels["storage"], arm.levels["work"]): arm.name for arm in study.arms if not arm.control}
    table_rows = []
    for storage in study.factors["storage"]:
        arms = [names[storage, column.work] for column in COLUMNS]
        marks = [mark for arm in arms if (mark := mark_of(study, emulated, arm)) is not None]
        mark = MARK if MARK in marks else next(iter(marks), None)
        cells = [_cell(analysis, arm, storage, column) for arm, column in zip(arms, COLUMNS, strict=True)]
        table_rows.append([marked(storage, mark), *cells])
    return table_rows


def _cell(analysis: Analysis, arm: str, storage: str, column: Column) -> str:
    if storage != _BASELINE:
        try:
            return effect(analysis.finding(arm, column.metric))
        except KeyError:
            return "-"
    summary = next(each for each in analysis.arms if each.arm == arm)
    value = summary.values[column.metric].median if column.metric in summary.values else None
    return "-" if value is None else f"{value:,.4g} {column.unit}"


def effect(finding: Finding) -> str:
    """`+12 % [+8, +15]`; a hyphen for an unknown effect."""
    estimate = finding.estimate
    if estimate.point is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.point:+.0f} % (n = {estimate.n})"
    return f"{100 * estimate.point:+.0f} % [{100 * estimate.low:+.0f}, {100 * estimate.high:+.0f}]"


def table(table_rows: Sequence[Sequence[str]], blocks: int) -> str:
    """As Markdown."""
    heads = ["storage", *(column.title for column in COLUMNS)]
    lines = [heads, ["---"] * len(heads), *table_rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    made = f"{blocks} block{'' if blocks == 1 else 's'}"
    return f"{text}\n\n{made}; each storage against `bind` in the same block, with a 95 % interval.\n"


def main() -> int:
    """Read the store and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    try:
        store = open_store(given.store)
        study = store.plan.study
        records = store.records()
        analysis = analyze(study, records)
    except TareError as error:
        sys.stderr.write(f"bench.storage: {error}\n")
        return 1
    text = table(rows(study, analysis, emulated_arms(records)), len(analysis.blocks))
    sys.stdout.write(text)
    if given.markdown is not None:
        given.markdown.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
