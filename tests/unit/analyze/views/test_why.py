"""The reasons speak where they apply, with the figures of the trace at hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.unit.analyze.views.traces import HEADER, QUANTA, trace

from tare.analyze.views.why import why
from tare.store.trace import Trace, read_trace

RECORDED = Path(__file__).resolve().parents[3] / "data" / "trace"


def reason(of: Trace) -> str:
    return "\n".join(why(of, 1.0))


def test_empty_is_not_zero() -> None:
    text = reason(trace())
    assert "empty is not zero" in text
    assert (
        "counted meanwhile: db 0.0 MiB read and 32.0 MiB written. No tool shows a container's disk I/O here" in text
    )
    assert "empty is not zero" not in reason(trace(empty_io=False))


def test_a_real_container_s_disk_writes_are_seen_by_no_tool() -> None:
    text = reason(read_trace(RECORDED))
    assert "The block I/O files of db stayed empty" in text
    assert "113.0 MiB written. No tool shows" in text


def test_without_a_tracing_program_reads_and_writes_are_unknown() -> None:
    whole = trace()
    uncounted = whole.tables["cgroup"].with_columns(block_read_bytes=None, block_written_bytes=None)
    assert "reads and writes are unknown" in reason(
        Trace(whole.header, whole.quanta, True, {**whole.tables, "cgroup": uncounted})
    )


def test_steal_is_told_with_what_it_does_to_docker_where_there_is_any() -> None:
    assert "kept 20.0 % of the CPUs' time" in reason(trace(steal=20))
    assert "25.0 % more CPU than a container got" in reason(trace(steal=20))
    assert "hypervisor" not in reason(trace())


def test_steps_and_page_cache_are_told_in_their_units() -> None:
    text = reason(trace())
    assert "steps of 4 ms: at one sample every 1 s a step is 0.4 % of a CPU" in text
    assert "db had 100.0 MiB, of which 30.0 MiB page cache and 20.0 MiB inactive" in text
    assert "wrote 40.0 MiB, of which 32.0 MiB were the watched groups' own requests" in text


def test_writes_that_nobody_counted_are_not_told_as_none() -> None:
    whole = trace()
    nothing = pl.lit(None, pl.Int64)
    uncounted = whole.tables["cgroup"].with_columns(block_read_bytes=nothing, block_written_bytes=nothing)
    of = Trace(whole.header, whole.quanta, True, {**whole.tables, "cgroup": uncounted})
    assert "The host's devices wrote" in reason(whole)
    assert "The host's devices wrote" not in reason(of)


def test_an_empty_trace_has_nothing_to_explain() -> None:
    assert why(Trace(HEADER, QUANTA, True, {}), 1.0) == ()


def test_groups_are_told_together() -> None:
    whole = trace()
    second = whole.tables["cgroup"].with_columns(name=pl.lit("web"), target=pl.lit(99))
    both = {**whole.tables, "cgroup": pl.concat([whole.tables["cgroup"], second], how="vertical_relaxed")}
    lines = [each for each in why(Trace(whole.header, whole.quanta, True, both), 1.0) if "stayed empty" in each]
    assert len(lines) == 1
    assert "files of db and web stayed empty" in lines[0]
    assert "db 0.0 MiB read and 32.0 MiB written; web 0.0 MiB read and 32.0 MiB written" in lines[0]
