"""Views of a run in a store: its measure phase, with the samples that real tools left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.views.test_compare import row
from tests.unit.analyze.views.traces import S, trace, write
from tests.unit.record.parts import between, route, sounding

from tare.analyze.views.summary import has_trace, observed, telling, views_of, views_of_run
from tare.errors import StoreError
from tare.plan.expand import expand
from tare.record.between import Between, Link, Throughput
from tare.record.node import NodeFacts
from tare.record.run_record import Phase, PhaseTime, RunRecord
from tare.report.sections.views import groups
from tare.report.views.table import render
from tare.store import Store, open_store, resume_store
from tare.store.trace import Trace

ARMS = ("bare", "bridge")
MEASURED = PhaseTime(phase=Phase.MEASURE, began_at=1002.0, seconds=6.0, monotonic_s=2.0)


def store_with(path: Path, *, tool: bool = True) -> Store:
    """Of both arms a run of 10 s whose measure phase is from 2 to 8 s; docker stats watched the second arm's."""
    made = [
        each.model_copy(update={"raw": (), "phases": (MEASURED,)}) for each in synthetic.records(ARMS, blocks=1)
    ]
    with resume_store(path, expand(synthetic.study(ARMS))) as writer:
        for record in made:
            writer.commit(record)
    store = open_store(path)
    for record in made:
        write(trace(seconds=10, name="sut"), store.raw(record, "monitors/probe/trace"))
    if tool:
        folder = store.raw(of_arm(store, "bridge"), "monitors")
        frame = row("docker-stats", "cpu_percent", [60.0] * 9, subject="sut")
        kept = pl.col("to_ns").is_between(2_500_000_000, 7_500_000_000)
        frame.with_columns(kept=kept).write_parquet(folder / "docker-stats.parquet")
        pl.DataFrame({"other": [1]}).write_parquet(folder / "own.parquet")
    return store


def of_arm(store: Store, arm: str) -> RunRecord:
    return next(each for each in store.records() if each.arm == arm)


def test_views_are_of_the_measure_phase(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    views = views_of_run(store, of_arm(store, "bridge"))
    assert views.arm == "bridge"
    assert views.views.seconds == 6.0
    (line,) = views.views.compared
    assert line.real is not None
    # Samples end at 1.5, 2.5 … 9.5 s; of those that are kept the first begins before 2 s, where the phase does.
    assert line.real.samples == 5
    assert line.real.agrees


def test_a_run_is_chosen_that_real_tools_watched(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    watched: dict[str, dict[str, object]] = {"bare": {"probe": {}, "docker-stats": {}}, "bridge": {"probe": {}}}
    records = [each.model_copy(update={"monitors": watched[each.arm]}) for each in store.records()]
    chosen, _ = telling(store, records, others={"bare"})
    assert chosen is not None
    assert chosen.arm == "bare"


def test_else_one_that_is_not_the_baseline(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store", tool=False)
    chosen, _ = telling(store, store.records(), others={"bare"})
    assert chosen is not None
    assert chosen.arm == "bridge"
    assert chosen.views.compared == ()


def test_runs_without_a_trace_have_no_views(tmp_path: Path) -> None:
    with resume_store(tmp_path / "store", expand(synthetic.study(ARMS))) as writer:
        writer.commit(synthetic.record(0, "bare", 1900.0).model_copy(update={"raw": ()}))
    store = open_store(tmp_path / "store")
    (record,) = store.records()
    assert not has_trace(store, record)
    assert telling(store, store.records(), {"bare"}) == (None, ())
    with pytest.raises(StoreError, match=r"has no trace.*imported"):
        views_of_run(store, record)


def test_damaged_samples_are_told(tmp_path: Path) -> None:
    (tmp_path / "mpstat.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(StoreError, match=r"samples .*mpstat"):
        observed(tmp_path)


def test_a_long_run_is_looked_at_less_often(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    assert views_of_run(store, of_arm(store, "bare")).views.interval_s == 1.0
    assert views_of_run(store, of_arm(store, "bare"), 2.0).views.interval_s == 2.0


def test_mean_times_of_requests_are_over_the_requests_and_not_over_idle_seconds() -> None:
    still = trace()
    writes = [0, 0, 0, 100, 100, 100, 100, 100, 100]
    took_ms = [each * 2 for each in writes]
    disk = still.tables["disk"].with_columns(writes=pl.Series(writes), write_ms=pl.Series(took_ms))
    views = views_of(replace(still, tables={**still.tables, "disk": disk}))
    (line,) = (one for one in views.lines if one.quantity.name == "write_await")
    assert line.figures.samples == 4
    assert line.figures.value == 2.0
    assert line.figures.least == 0.0


def three_hosts() -> Between:
    """Of a site whose client's clock, and that of its second node, are 100 s ahead."""
    link = Link("h2", "h1", route(), sounding(100.0), Throughput(1.0, 1.0))
    return between("h1", "h3", links=(link,), before=sounding(100.0))


def later(trace: Trace, seconds: int) -> Trace:
    """As a host records it whose clock is so far ahead."""
    moments = [pl.col(name) + seconds * S for name in ("woke_ns", "due_ns")]
    tables = {
        name: table.with_columns(
            *(
                pl.col(column) + seconds * S
                for column in table.columns
                if column.endswith(("_t0_ns", "_t1_ns", "at_ns")) or column in ("t0_ns", "t1_ns")
            ),
            *(moment for moment in moments if moment.meta.output_name() in table.columns),
        )
        for name, table in trace.tables.items()
    }
    return replace(trace, tables=tables)


def test_every_host_of_a_run_is_shown_under_its_name(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store", tool=False)
    run = of_arm(store, "bridge").model_copy(
        update={"between": three_hosts(), "nodes": {"sut-1": NodeFacts(on="h1"), "sut-2": NodeFacts(on="h2")}}
    )
    for of in ("sut-2", "client"):
        write(later(trace(seconds=10, name=of), 100), store.raw(run, f"monitors/{of}-host/trace"))
    views = views_of_run(store, run)
    assert views.views.hosts == {"sut-1": "h1", "sut-2": "h2", "client": "h3"}
    used = {line.subject: line.figures.value for line in views.views.lines if line.quantity.name == "cpu_percent"}
    assert used["sut"] == used["sut-2"] == used["client"]
    subjects = {line.subject for line in views.views.lines}
    assert {"all", "all of sut-2", "all of client"} <= subjects
    ends = views.views.samples.group_by("subject").agg(pl.col("to_ns").max())
    assert set(ends.filter(pl.col("subject").str.starts_with("all"))["to_ns"]) == {8 * S}
    titles = [title for title, _ in groups(views)]
    assert "CPU of a control group: sut-2 on h2" in titles
    assert {title for title in titles if title.startswith("CPU of the host")} == {
        f"CPU of the host: {host}" for host in ("h1", "h2", "h3")
    }
    text = render(views.views)
    assert "Hosts: sut-1 on h1, sut-2 on h2, client on h3." in text
    assert "CPU of the host: all of sut-2" in text


def test_what_a_tool_said_on_another_host_stands_beside_that_host_s_trace(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store", tool=False)
    run = of_arm(store, "bridge").model_copy(update={"between": three_hosts()})
    write(later(trace(seconds=10, name="client"), 100), store.raw(run, "monitors/client-host/trace"))
    result = row("docker-stats", "cpu_percent", [60.0] * 9, subject="client").with_columns(kept=pl.lit(value=True))
    result.write_parquet(store.raw(run, "monitors") / "client-docker-stats.parquet")
    (line,) = views_of_run(store, run).views.compared
    assert line.subject == "client"
    assert line.real is not None
    assert line.real.agrees
