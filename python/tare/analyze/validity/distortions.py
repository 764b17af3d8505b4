"""Rule on figures of other tools that are known to be distorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tare.analyze.validity.evidence import Alarm, Evidence
from tare.record.run_record import RunRecord


@dataclass(frozen=True)
class Distortion:
    """What is wrong with the figures, and what to do."""

    what: str
    remedy: str


DISTORTIONS: Mapping[str, Distortion] = {
    "closing-in-runtime": Distortion(
        "YCSB counts the closing of its connections, over 1 % of the run, in RunTime, so throughput is too low",
        "divide the operations by the time without CLEANUP, or make longer runs",
    ),
    "events-for-transactions": Distortion(
        "sysbench counted no transaction (`transactions: 0`); throughput is its events per second",
        "compare these runs only with runs of the same options",
    ),
    "failures-counted": Distortion(
        "over 5 % of the requests in the throughput failed (the goodput is lower)",
        "compare the goodput in the runs' details",
    ),
    "quarter-seconds": Distortion(
        "redis-benchmark with --threads sees a test's end only every 0.25 s, over 1 % of the run",
        "make tests of 25 s or more",
    ),
    "errors-uncounted": Distortion(
        "the tool prints no count of errors, so failed operations may count as fast ones",
        "look for errors in the server's log",
    ),
}
"""Name in a record's `imported.distortions` → what it means."""


def imported_distortion(evidence: Evidence) -> Iterator[Alarm]:
    """A tool's figures have a known distortion, whose threshold is its parser's."""
    if evidence.study.imported is None:
        return
    for name, distortion in DISTORTIONS.items():
        rows = [row for row in evidence.all_rows.tolist() if name in _of(evidence.columns.records[row])]
        if rows:
            runs = evidence.ids(rows)
            yield Alarm("imported-distortion", None, distortion.what, runs, distortion.remedy)


def _of(record: RunRecord) -> tuple[str, ...]:
    return () if record.imported is None else record.imported.distortions
