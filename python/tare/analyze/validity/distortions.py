"""Rule on figures of other tools that are known to be distorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.analyze.columns import known_values
from tare.analyze.validity.evidence import Alarm, Evidence, share
from tare.record.run_record import RunRecord


@dataclass(frozen=True)
class Distortion:
    """What is wrong with the figures, and what to do.

    `worst`: figure in the measurement's details of which `what` names the largest, as a share.
    """

    what: str
    remedy: str
    worst: str | None = None


DISTORTIONS: Mapping[str, Distortion] = {
    "closing-in-runtime": Distortion(
        "YCSB counts the closing of its connections in RunTime, so throughput is too low, by up to {worst}",
        "divide the operations by the time without CLEANUP, or make longer runs",
        worst="closing_share",
    ),
    "coordinated-omission": Distortion(
        "load came at a set rate, but latencies are timed from the actual send: requests that a stalled server "
        "kept back are missing (coordinated omission), so that high percentiles are too low, often by far",
        "compare no percentiles; time from the intended send (YCSB: measurement.interval=intended)",
    ),
    "other-duration": Distortion(
        "a run lasted over 5 % longer or shorter than asked for: another limit ended it (sysbench before 1.0: "
        "10,000 requests), or its last requests stalled, and throughput is over that time",
        "compare runs of equal length: lift the other limit, or make runs longer",
    ),
    "percentiles-averaged": Distortion(
        "a percentile is an average by its heading; averages of percentiles are no percentiles, and differ from "
        "them most where the averaged runs or intervals differ",
        "compare mean latencies, or give each run's own percentile",
    ),
    "windows-for-runs": Distortion(
        "rows follow a clock in equal steps: they are windows of a run, no runs, so intervals are too narrow, and "
        "percentiles are of a window each",
        "give one row for each run: the whole run's throughput and percentiles",
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
            what = distortion.what.format(worst=_worst(evidence, rows, distortion.worst))
            yield Alarm("imported-distortion", None, what, evidence.ids(rows), distortion.remedy)


def _worst(evidence: Evidence, rows: Sequence[int], name: str | None) -> str:
    """The largest of a detail over these runs; a record of an older import lacks it."""
    if name is None:
        return ""
    known = known_values(evidence.columns.number("measurement", "details", name)[rows])
    return share(max(known)) if known else "an unknown share"


def _of(record: RunRecord) -> tuple[str, ...]:
    return () if record.imported is None else record.imported.distortions
