"""The table of `make bench-start`: how long a server takes to start and to stop in each deployment.

    python -m bench.start.table STORE [--markdown FILE]

To start: a run's provision and load phases, which copy the data, start the server, wait for its first answer and
read back its settings. To stop: its collect and teardown phases, which end the server, keep its files and remove
the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from tare.errors import TareError
from tare.run.emulated import EmulatedArms, emulated_arms, mark_of, marked
from tare.run.record import Phase, RunRecord
from tare.store.read import open_store
from tare.study.model import Study

HEADS = ("deployment", "to start, s", "least to most", "to stop, s", "least to most", "n")
_START, _STOP = (Phase.PROVISION, Phase.LOAD), (Phase.COLLECT, Phase.TEARDOWN)


def rows(study: Study, records: Sequence[RunRecord], emulated: EmulatedArms) -> list[list[str]]:
    """A row an arm in the study's order, of its good runs; an arm without any has hyphens."""
    table_rows = []
    for arm in study.arms:
        good = [run for run in records if run.arm == arm.name and run.outcome.ok]
        cells = [*_spread(_seconds(run, _START) for run in good), *_spread(_seconds(run, _STOP) for run in good)]
        table_rows.append([marked(arm.name, mark_of(study, emulated, arm.name)), *cells, str(len(good))])
    return table_rows


def _seconds(run: RunRecord, phases: Sequence[Phase]) -> float:
    return sum(time.seconds for time in run.phases if time.phase in phases)


def _spread(seconds: Iterable[float]) -> tuple[str, str]:
    known = list(seconds)
    return (f"{median(known):.3g}", f"{min(known):.3g} to {max(known):.3g}") if known else ("-", "-")


def table(table_rows: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    lines = [HEADS, ["---"] * len(HEADS), *table_rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\nMedians of good runs.\n"


def main() -> int:
    """Read the store and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    try:
        store = open_store(given.store)
        records = store.records()
        text = table(rows(store.plan.study, records, emulated_arms(records)))
    except TareError as error:
        sys.stderr.write(f"bench.start: {error}\n")
        return 1
    sys.stdout.write(text)
    if given.markdown is not None:
        given.markdown.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
