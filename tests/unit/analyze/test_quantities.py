"""Quantities as casalicchio-2017 defines them, held against figures worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.views.traces import trace
from tests.unit.record.parts import between, with_parts

from tare.analyze.quantities import QuantityRow, WatchedTrace, quantities
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.record.node import NodeFacts
from tare.record.run_record import RunRecord
from tare.report import EXPORTERS
from tare.report.content import build_report
from tare.report.source_quantities import with_quantities
from tare.study.model import Study
from tare.study.protocol_spec import InterleaveSpec
from tare.study.values import PublishedRange, Quantities

WANTED = Quantities(
    trim=1,
    wanted={
        "e_ovh": (PublishedRange(low=0.8, high=2.7, where="text"),),
        "cpu_ovh": (PublishedRange(low=0.1, high=0.1, when="at 70 %", where="text"),),
        "io_ovh_w": (),
    },
)
RATES = {"bare": (100.0, 110.0, 105.0), "bridge": (90.0, 99.0, 100.0)}


def study() -> Study:
    return synthetic.study(("bare", "bridge"), blocks=3, published=(), quantities=WANTED)


def with_usage(record: RunRecord, cpu_s: float, **more: Any) -> RunRecord:
    return with_parts(record, usage={"sut_cpu_s": cpu_s, **more})


def records() -> list[RunRecord]:
    """CPU: 4 s of work in each bare run of 4 s, 3 s in each of the others."""
    made = []
    for block in (1, 2, 3):
        for arm, rates in RATES.items():
            record = synthetic.record(block, arm, rates[block - 1])
            made.append(with_usage(record, 4.0 if arm == "bare" else 3.0))
    return made


def untraced(record: RunRecord) -> WatchedTrace:
    """Nothing was kept of a run."""
    del record
    return WatchedTrace()


def one(rows: tuple[QuantityRow, ...], quantity: str, source: str) -> QuantityRow:
    return next(each for each in rows if (each.quantity, each.source) == (quantity, source))


def test_execution_time_is_the_time_for_one_operation() -> None:
    row = one(quantities(study(), records(), untraced), "e_ovh", "sysbench")
    bare, bridge = ([1e6 / rate for rate in RATES[arm]] for arm in ("bare", "bridge"))
    means = [sum(values) / 3 for values in (bare, bridge)]
    assert row.reference.mean == pytest.approx(means[0])
    assert row.reference.mse == pytest.approx(sum((each - means[0]) ** 2 for each in bare) / 3)
    assert row.value.mean == pytest.approx(means[1])
    assert row.overhead == pytest.approx(abs(means[1] - means[0]) / means[0])
    assert row.signed.point == pytest.approx((100 / 90 * 110 / 99 * 105 / 100) ** (1 / 3) - 1)


def test_after_looks_a_quantity_pays_for_them_like_any_other_estimate() -> None:
    ratios = [(1e6 / RATES["bridge"][n]) / (1e6 / RATES["bare"][n]) for n in range(3)]
    fixed = one(quantities(study(), records(), untraced), "e_ovh", "sysbench").signed
    assert fixed == paired_log_ratio_t(ratios)
    looking = study().model_copy(update={"protocol": InterleaveSpec()})
    paid = one(quantities(looking, records(), untraced), "e_ovh", "sysbench").signed
    wider = paired_log_ratio_t(ratios, 0.965)
    assert (paid.low, paid.high) == (wider.low, wider.high)
    assert (paid.confidence, paid.method) == (0.95, "sequential-paired-log-ratio-t")


def test_the_absolute_value_hides_what_the_sign_tells() -> None:
    row = one(quantities(study(), records(), untraced), "cpu_ovh", "control group")
    assert row.reference.mean == pytest.approx(100.0)
    assert row.value.mean == pytest.approx(75.0)
    assert row.overhead == pytest.approx(0.25)
    assert row.signed.point == pytest.approx(-0.25)


def test_what_no_source_tells_is_not_there() -> None:
    results = quantities(study(), records(), untraced)
    assert {each.source for each in results if each.quantity == "cpu_ovh"} == {"control group"}
    assert not [each for each in results if each.quantity == "io_ovh_w"]


def test_a_study_that_wants_none_has_none() -> None:
    assert quantities(synthetic.study(("bare", "bridge")), records(), untraced) == ()


def test_tools_speak_by_their_views_of_the_trace() -> None:
    whole = trace(6)
    group = whole.tables["cgroup"].with_columns(pl.lit("sut").alias("name"))
    seen = replace(whole, tables={**whole.tables, "cgroup": group})
    made = [with_usage(each, 4.0, began_monotonic_s=0.0, ended_monotonic_s=6.0) for each in records()]
    results = quantities(study(), made, lambda _: WatchedTrace(seen))
    probe, docker = (one(results, "cpu_ovh", source) for source in ("tare-probe", "docker stats, view"))
    assert probe.reference.mean == pytest.approx(60.0)
    assert docker.reference.mean == pytest.approx(60.0, rel=0.05)
    assert probe.overhead == 0.0
    assert one(results, "io_ovh_w", "tare-probe").value.mean == pytest.approx(8.0)
    shown = one(results, "io_ovh_w", "docker stats, view")
    assert (shown.value.mean, shown.overhead) == (0.0, None)
    assert not [each for each in results if (each.quantity, each.source) == ("io_ovh_w", "cAdvisor, view")]


def test_iostat_s_devices_are_added_up_without_those_that_stand_on_others() -> None:
    rows = [("iostat", "written_kib", name, 0, 10**9, 2048.0, 0) for name in ("vda", "dm-0", "loop0")]
    schema = ("tool", "quantity", "subject", "from_ns", "to_ns", "value", "within_ns")
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    results = quantities(study(), records(), lambda _: WatchedTrace(observed=frame))
    assert one(results, "io_ovh_w", "iostat").value.mean == pytest.approx(2.0)


def test_a_tool_that_ran_stands_beside_its_view() -> None:
    frame = pl.DataFrame(
        {
            "tool": "docker-stats",
            "quantity": "cpu_percent",
            "subject": "sut",
            "from_ns": [0, 1_000_000_000],
            "to_ns": [1_000_000_000, 2_000_000_000],
            "value": [50.0, 70.0],
        }
    )
    results = quantities(study(), records(), lambda _: WatchedTrace(observed=frame))
    row = one(results, "cpu_ovh", "docker stats")
    assert row.value.mean == pytest.approx(60.0)
    assert not [each for each in results if each.source == "docker stats, view"]


def test_only_blocks_in_which_both_told_are_compared() -> None:
    made = [each for each in records() if (each.arm, each.block) != ("bridge", 3)]
    row = one(quantities(study(), made, untraced), "e_ovh", "sysbench")
    assert (row.value.n, row.reference.n) == (2, 2)
    assert row.reference.mean == pytest.approx((1e6 / 100 + 1e6 / 110) / 2)


def test_samples_at_the_ends_are_dropped() -> None:
    whole = trace(6)
    group = whole.tables["cgroup"].with_columns(pl.lit("sut").alias("name"))
    seen = replace(whole, tables={**whole.tables, "cgroup": group})
    made = [with_usage(each, 4.0, began_monotonic_s=0.0, ended_monotonic_s=2.0) for each in records()]
    results = quantities(study(), made, lambda _: WatchedTrace(seen))
    assert {each.source for each in results if each.quantity == "cpu_ovh"} == {"control group"}


def test_a_report_tells_them_with_what_was_published() -> None:
    report = with_quantities(build_report(study(), records()), records(), lambda _, name: Path("/nowhere") / name)
    for style in ("terminal", "html", "md"):
        result = EXPORTERS[style](report)
        assert "CPU_ovh" in result.replace("\\", "")
        assert "80 to 270" in result.replace("\xa0", " ")
    entries = json.loads(EXPORTERS["json"](report))["quantities"]
    assert {(each["quantity"], each["source"]) for each in entries} == {
        ("e_ovh", "sysbench"),
        ("cpu_ovh", "control group"),
    }


def test_damaged_samples_are_told(tmp_path: Path) -> None:
    (tmp_path / "mpstat.parquet").write_bytes(b"no table")
    report = with_quantities(build_report(study(), records()), records(), lambda _, name: tmp_path)
    assert any(row.source == "control group" for row in report.quantities)
    assert len(report.unread) == len(records()) == 6
    assert report.notices == (*report.unread[:3], "and 3 more like these")
    for notice, run in zip(report.unread, records(), strict=True):
        assert notice.startswith(f"not all of {run.run_id} is shown: the samples {tmp_path}/mpstat.parquet cannot")


def sampled(*rows: tuple[str, str, str, float]) -> WatchedTrace:
    """Samples of one second: tool, quantity, subject, value."""
    cells = [(tool, quantity, subject, 0, 10**9, value) for tool, quantity, subject, value in rows]
    names = ("tool", "quantity", "subject", "from_ns", "to_ns", "value")
    return WatchedTrace(observed=pl.DataFrame(cells, schema=names, orient="row"))


def test_samples_without_a_time_are_left_out() -> None:
    seen = sampled(
        *[("docker-stats", "block_written_bytes", "sut", float(mib << 20)) for mib in (1, 3, 9)]
    ).observed
    assert seen is not None
    ends = pl.Series([0, 10**9, None])
    results = quantities(study(), records(), lambda _: WatchedTrace(observed=seen.with_columns(to_ns=ends)))
    assert one(results, "io_ovh_w", "docker stats").value.mean == 2.0


def test_what_nodes_hosts_wrote_is_added_up_and_their_cpu_time_is_a_mean() -> None:
    seen = sampled(
        ("iostat", "written_kib", "sda", 1024.0),
        ("iostat", "written_kib", "sda of sut-2", 2048.0),
        ("iostat", "written_kib", "dm-0 of sut-2", 2048.0),
        ("mpstat", "usr", "all", 20.0),
        ("mpstat", "usr", "all of sut-2", 40.0),
        ("sar", "user", "all", 20.0),
        ("sar", "system", "all", 5.0),
        ("sar", "idle", "all", 75.0),
        ("sar", "user", "all of sut-2", 41.0),
    )
    results = quantities(study(), records(), lambda _: seen)
    assert one(results, "io_ovh_w", "iostat").value.mean == 3.0
    assert one(results, "cpu_ovh", "mpstat").value.mean == 30.0
    assert one(results, "cpu_ovh", "sar").value.mean == (20.0 + 5.0 + 41.0) / 2


def test_pidstat_s_processes_are_those_of_every_node() -> None:
    nodes = {"sut-1": NodeFacts(on="h1"), "sut-2": NodeFacts(on="h2")}
    made = [run.model_copy(update={"nodes": nodes}) for run in records()]
    busy = [("pidstat", "cpu_percent", f"{name} pid 7", 30.0) for name in ("sut-1", "sut-2", "client", "shim")]
    written = [("pidstat", "written_kib", f"{name} pid 7", 1024.0) for name in ("sut-1", "sut-2", "client")]
    results = quantities(study(), made, lambda _: sampled(*busy, *written))
    assert one(results, "cpu_ovh", "pidstat").value.mean == 60.0
    assert one(results, "io_ovh_w", "pidstat").value.mean == 2.0
    assert not [row for row in quantities(study(), made, lambda _: sampled(busy[0])) if row.source == "pidstat"]
    alone = quantities(study(), records(), lambda _: sampled(("pidstat", "cpu_percent", "sut pid 7", 30.0)))
    assert one(alone, "cpu_ovh", "pidstat").value.mean == 30.0


def test_a_node_that_was_not_seen_leaves_no_sum_of_the_others() -> None:
    nodes = {"sut-1": NodeFacts(on="h1"), "sut-2": NodeFacts(on="h2")}
    made = [run.model_copy(update={"nodes": nodes}) for run in records()]
    first, second = (("iostat", "written_kib", name, 1024.0) for name in ("sda", "sda of sut-2"))
    assert one(quantities(study(), made, lambda _: sampled(first, second)), "io_ovh_w", "iostat").value.mean == 2.0
    assert not [row for row in quantities(study(), made, lambda _: sampled(first)) if row.source == "iostat"]
    whole = replace(sampled(first), one_kernel=True)
    assert one(quantities(study(), made, lambda _: whole), "io_ovh_w", "iostat").value.mean == 1.0


@pytest.mark.parametrize(("one_boot", "written"), [(False, 3.0), (True, 1.0)])
def test_the_client_s_host_is_no_part_of_it_and_one_kernel_is_counted_once(
    one_boot: bool, written: float, tmp_path: Path
) -> None:
    (tmp_path / "monitors").mkdir()
    for name, kib in (("sda", 1024.0), ("sda of sut-2", 2048.0), ("sda of client", 4096.0)):
        table = sampled(("iostat", "written_kib", name, kib)).observed
        assert table is not None
        kept = table.with_columns(kept=pl.lit(value=True))
        kept.write_parquet(tmp_path / "monitors" / f"{name}.parquet")
    made = [run.model_copy(update={"between": between(one_boot=one_boot)}) for run in records()]
    report = with_quantities(build_report(study(), made), made, lambda _, name: tmp_path / name)
    assert one(report.quantities, "io_ovh_w", "iostat").value.mean == written
