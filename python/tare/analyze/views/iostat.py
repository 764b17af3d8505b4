"""iostat -x: block devices of the host."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import grown, hundredths, over_intervals, risen
from tare.analyze.views.model import Formula, Grain, Kind, Measure, Quantity, View
from tare.analyze.views.sysstat import SOURCE, per_second


def per_s(readings: pl.DataFrame, counter: str) -> pl.DataFrame:
    """Completed requests per second."""
    return over_intervals(readings, risen(counter) / hundredths())


def kib_per_s(readings: pl.DataFrame, counter: str) -> pl.DataFrame:
    """KiB per second: half of the sectors of 512 bytes."""
    return over_intervals(readings, risen(counter) / 2 / hundredths())


def await_ms(readings: pl.DataFrame, time: str, count: str) -> pl.DataFrame:
    """Mean time of completed requests; 0 without any."""
    done = grown(count)
    return over_intervals(readings, pl.when(done > 0).then(grown(time) / done).when(done.is_not_null()).then(0.0))


def util_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Percent of the time in which any request was in progress."""
    return over_intervals(readings, risen("busy_ms") / 1000 / hundredths() * 100)


def queue(readings: pl.DataFrame) -> pl.DataFrame:
    """Mean number of requests in progress: total time of requests / time."""
    return over_intervals(readings, risen("weighted_ms") / 1000 / hundredths())


_LINE = f"{SOURCE} iostat.c write_ext_stat"


def _quantity(
    name: str, printed: tuple[str, str], formula: Formula, says: str, grain: Grain | None = None
) -> Quantity:
    shown, unit = printed
    return per_second(
        name=name,
        shown=shown,
        unit=unit,
        measure=Measure.HOST_DISK,
        readings="disks",
        formula=formula,
        says=says,
        cites=f"{_LINE}; rd_stats.c compute_ext_disk_stats" if name == "util" else _LINE,
        one={"1/s": 1.0, "KiB/s": 0.5}.get(unit, 0.0),
        grain=grain,
    )


def _waiting(name: str, shown: str, time: str, count: str) -> Quantity:
    return Quantity(
        name=name,
        shown=shown,
        unit="ms",
        measure=Measure.HOST_DISK,
        kind=Kind.RATE,
        readings="disks",
        formula=partial(await_ms, time=time, count=count),
        says=f"Δ{time} / Δ{count}, 0 where none completed",
        cites=_LINE,
        step=0.01,
        weighted_by=count,
    )


IOSTAT = View(
    tool="iostat",
    title="iostat -x",
    cadence="Any whole number of seconds; its first report is the average since boot unless -y.",
    quantities=(
        _quantity("reads", ("r/s", "1/s"), partial(per_s, counter="reads"), "Δreads / interval"),
        _quantity("writes", ("w/s", "1/s"), partial(per_s, counter="writes"), "Δwrites / interval"),
        _quantity("flushes", ("f/s", "1/s"), partial(per_s, counter="flushes"), "Δflushes / interval"),
        _quantity(
            "read_kib", ("rkB/s", "KiB/s"), partial(kib_per_s, counter="read_sectors"), "Δsectors / 2 / interval"
        ),
        _quantity(
            "written_kib",
            ("wkB/s", "KiB/s"),
            partial(kib_per_s, counter="written_sectors"),
            "Δsectors / 2 / interval",
        ),
        _quantity(
            "reads_merged", ("rrqm/s", "1/s"), partial(per_s, counter="reads_merged"), "Δmerged reads / interval"
        ),
        _quantity(
            "writes_merged", ("wrqm/s", "1/s"), partial(per_s, counter="writes_merged"), "Δmerged writes / interval"
        ),
        _waiting("read_await", "r_await", "read_ms", "reads"),
        _waiting("write_await", "w_await", "write_ms", "writes"),
        _waiting("flush_await", "f_await", "flush_ms", "flushes"),
        _quantity(
            "queue",
            ("aqu-sz", "requests"),
            queue,
            "Δtime of all requests / interval",
            Grain("disk", "weighted_ms", lambda _: 1 / 1000),
        ),
        _quantity(
            "util",
            ("%util", "%"),
            util_percent,
            "Δtime with any request under way / interval * 100",
            Grain("disk", "busy_ms", lambda _: 100 / 1000),
        ),
    ),
    blind_to=(
        "containers: a device's requests are everybody's",
        "who waits: %util is about time, and a device that serves many requests at once is not full at 100 %",
        "the page cache: buffered writes show when they are written back, and reads that it served never",
        "devices without counters of their own: overlay2 is a file system, its requests are the host disk's",
    ),
)
