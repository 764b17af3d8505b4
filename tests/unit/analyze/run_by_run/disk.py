"""What set the rate of runs, one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from tests.unit.analyze.run_by_run.load import busy, limit_reached
from tests.unit.record.parts import as_tree

from tare.analyze.bottleneck import Bottleneck
from tare.analyze.numbers import number_at
from tare.analyze.validity.disk import LIMITS, Limit
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share
from tare.analyze.validity.load import BUSY, WAITING
from tare.record.run_record import RunRecord
from tare.study.rules.levels import is_disk_bound


def disk_busy(run: RunRecord) -> float | None:
    return number_at(as_tree(run.usage), ("disk", "busy"))


def waiting_io(run: RunRecord) -> float | None:
    return number_at(as_tree(run.usage), ("saturation", "sut", "waiting_io"))


def limit_used(run: RunRecord) -> float | None:
    return number_at(as_tree(run.usage), ("disk_limit", "used"))


def disk_reached(run: RunRecord) -> bool | None:
    limits = ((disk_busy(run), BUSY), (limit_used(run), BUSY), (waiting_io(run), WAITING))
    known = [value >= limit for value, limit in limits if value is not None]
    return any(known) if known else None


def limits_of(run: RunRecord) -> tuple[Limit, ...] | None:
    reached = _reached(run)
    limits = tuple(limit for limit in LIMITS if reached.get(limit))
    return None if not limits and None in reached.values() else limits


def not_disk_bound(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.arms:
        if not is_disk_bound(evidence.study, arm):
            continue
        good = evidence.good(arm)
        others = [run for run in good if not _by_disk_alone(run)]
        if 2 * len(others) >= len(good):
            yield Alarm(
                "not-disk-bound",
                arm,
                f"the study declares it disk-bound, but {_evidence_text(others)}",
                ids(others),
                "use more data or less memory, or more CPU time if that ran out; otherwise the difference "
                "between these arms is not a cost of storage",
            )


def _reached(run: RunRecord) -> dict[Limit, bool | None]:
    alone = run.settings.get("client", "") is None
    of_client: dict[Limit, bool | None] = {} if alone else {"client": limit_reached(run, "client")}
    return {**of_client, "sut": limit_reached(run, "sut"), "disk": disk_reached(run)}


def _by_disk_alone(run: RunRecord) -> bool:
    return all(reached is (limit == "disk") for limit, reached in _reached(run).items())


def _evidence_text(runs: Sequence[RunRecord]) -> str:
    disks = sorted({str(as_tree(run.usage)["disk"]["name"]) for run in runs if disk_busy(run) is not None})
    figures = (
        (f"the busiest disk ({', '.join(disks)}) was busy", "of the time", disk_busy),
        ("the limit on disk operations delayed the SUT", "of the time", limit_used),
        ("the SUT waited for I/O", "of the time", waiting_io),
        ("the SUT used", "of its CPU time", partial(busy, side="sut")),
        ("the client used", "of its own", partial(busy, side="client")),
    )
    parts = [
        f"{words} {share(max(known))} {of_what}"
        for words, of_what, read in figures
        if (known := [value for run in runs if (value := read(run)) is not None])
    ]
    if all(disk_reached(run) is None for run in runs):
        parts.insert(0, "no trace shows a disk")
    return f"{', '.join(parts)} at most"


def bottleneck_of(good: Sequence[RunRecord]) -> Bottleneck:
    recorded = [reached for run in good if (reached := limits_of(run)) is not None]
    return Bottleneck(
        sut_busy=_median(good, partial(busy, side="sut")),
        client_busy=_median(good, partial(busy, side="client")),
        sut_waiting_io=_median(good, waiting_io),
        disk_busy=_median(good, disk_busy),
        disk_depth=_median(good, partial(_of_disk, key="depth")),
        reads_per_s=_median(good, partial(_of_disk, key="reads_per_s")),
        writes_per_s=_median(good, partial(_of_disk, key="writes_per_s")),
        disk_limit_used=_median(good, limit_used),
        reached=tuple(limit for limit in LIMITS if 2 * sum(limit in each for each in recorded) > len(good))
        if 2 * len(recorded) > len(good)
        else None,
    )


def _of_disk(run: RunRecord, key: str) -> float | None:
    return number_at(as_tree(run.usage), ("disk", key))


def _median(runs: Sequence[RunRecord], read: Callable[[RunRecord], float | None]) -> float | None:
    values = [value for run in runs if (value := read(run)) is not None]
    return median(values) if values else None
