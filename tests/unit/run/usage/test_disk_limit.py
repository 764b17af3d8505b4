"""The part of a limit on disk operations that was used is read off the trace, and no limit has no part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tare.record.load_time import LoadTime, Span
from tare.record.trace import Traces
from tare.record.usage import Usage
from tare.run.usage.disk import disk_limit_in, share_used

S = 1_000_000_000
PHASE = Span(10.0, 20.0)
USAGE = Usage(began_monotonic_s=10.0, ended_monotonic_s=20.0)


def group(
    reads: Callable[[float], float], writes: Callable[[float], float] | None = None, *,
    name: str = "sut", target: int = 1, first: int = 5, last: int = 25,
) -> pl.DataFrame:  # fmt: skip
    """Both counters read ten times a second, as functions of the time; without one `writes` has no values."""
    times = [at / 10 for at in range(first * 10, last * 10 + 1)]
    return pl.DataFrame(
        {
            "target": target,
            "name": name,
            "io_t0_ns": [int(at * S) for at in times],
            "reads": [round(reads(at)) for at in times],
            "writes": [None if writes is None else round(writes(at)) for at in times],
        },
        schema_overrides={"writes": pl.Int64},
    )


def used(*groups: pl.DataFrame) -> float | None:
    return share_used(pl.concat(groups), PHASE, 500)


def test_the_more_of_both_ways_counts() -> None:
    assert used(group(lambda at: 450 * at, lambda at: 100 * at)) == pytest.approx(0.9)
    assert used(group(lambda at: 100 * at, lambda at: 450 * at)) == pytest.approx(0.9)


def test_turns_of_reads_and_writes_add_up() -> None:
    turns = group(lambda at: 500 * min(at, 15), lambda at: 500 * max(at, 15))
    assert used(turns) == pytest.approx(1.0)


@pytest.mark.parametrize("period_s", [0.5, 1.0, 2.0])
def test_what_comes_at_once_is_held_up_until_the_limit_has_let_it_through(period_s: float) -> None:
    """As cgroup v1 counts the writes of InnoDB's page cleaner, which come by the hundred."""
    bursts = group(lambda at: 500 * period_s * (at // period_s))
    assert used(bursts) == pytest.approx(1.0, abs=0.02)
    assert used(group(lambda at: 250 * period_s * (at // period_s))) == pytest.approx(0.5, abs=0.03)


def test_no_pause_is_made_up_for_by_what_comes_later() -> None:
    assert used(group(lambda at: 5000 * max(0.0, min(at - 14, 1)))) == pytest.approx(0.6)
    assert used(group(lambda at: 1000 * max(0.0, min(at - 14, 1)))) == pytest.approx(0.2)


def test_the_node_nearest_to_its_limit_is_told_where_all_are_known() -> None:
    idle, busy = group(lambda _: 0, name="sut-1"), group(lambda at: 480 * at, name="sut-2", target=2)
    assert used(idle, busy) == pytest.approx(0.96)
    assert used(busy, group(lambda at: at, name="sut-1", first=13)) is None
    assert used(busy, group(lambda at: at, name="sut-1", last=17)) is None


def test_without_a_limit_or_a_trace_the_use_of_a_limit_is_unknown(tmp_path: Path) -> None:
    traces = Traces(tmp_path)
    assert disk_limit_in(traces, PHASE, 500) is None
    client = group(lambda at: 480 * at, name="client", target=2)
    pl.concat([group(lambda at: 250 * at), client]).write_parquet(tmp_path / "cgroup.parquet")
    assert disk_limit_in(traces, PHASE, None) is None
    limit = disk_limit_in(traces, PHASE, 500)
    assert limit is not None
    assert limit.per_s == 500
    assert limit.used == pytest.approx(0.5)


def test_time_in_which_no_generator_drove_is_not_unused(tmp_path: Path) -> None:
    """A JVM that starts for 3 s and ends for 2 s, and keeps the limit at its end in between."""
    group(lambda at: 500 * max(0.0, min(at, 18) - 13)).write_parquet(tmp_path / "cgroup.parquet")
    load = LoadTime(13.0, 18.0, "generator")
    spans = (USAGE.phase, replace(USAGE, driven=load).load)
    whole, part = (disk_limit_in(Traces(tmp_path), span, 500) for span in spans if span is not None)
    assert whole is not None
    assert whole.used == pytest.approx(0.5)
    assert part is not None
    assert part.used == pytest.approx(1.0)


def test_counters_that_are_empty_are_not_zero(tmp_path: Path) -> None:
    empty = group(lambda at: at).with_columns(reads=pl.lit(None, dtype=pl.Int64))
    empty.write_parquet(tmp_path / "cgroup.parquet")
    assert disk_limit_in(Traces(tmp_path), PHASE, 500) is None
