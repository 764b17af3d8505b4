"""Small inputs of the kinds that people publish, each with the figures that are right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.imports.test_mapping import written
from typer.testing import CliRunner

from tare.analyze import analyze
from tare.cli import app
from tare.errors import StudyError
from tare.imports import Import, collect, load_mapping
from tare.report import terminal
from tare.report.content import build_report

CASES = Path(__file__).parents[3].parent / "shared" / "cases" / "imports"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the inputs are not in ../shared/cases/imports")


def case(name: str, tmp_path: Path, folder: str = "input", file: str = "mapping.yaml", **changes: str) -> Import:
    """Import a case; `changes`: a key of its mapping → what follows the key instead."""
    (place,) = CASES.glob(f"{name}-*")
    text = (place / file).read_text()
    for key, value in changes.items():
        kept = [line for line in text.splitlines() if not line.startswith(f"{key}:")]
        if key == "parser":
            kept = [line for line in kept if not line.startswith("  ")]
        text = "\n".join([*kept, f"{key}: {value}"]) + "\n"
    return collect(load_mapping(written(tmp_path, text)), place / folder)


def rates(made: Import, *conditions: str) -> Mapping[tuple[str, ...], list[float | None]]:
    """(Arm, levels of conditions) → throughput of its good runs, in their order."""
    throughputs: dict[tuple[str, ...], list[float | None]] = {}
    for run in made.runs:
        record = run.record
        if record.measurement is not None:
            key = (record.arm, *(record.levels[each] for each in conditions))
            throughputs.setdefault(key, []).append(record.measurement.throughput_per_s)
    return throughputs


def overheads(made: Import, arm: str, metric: str = "throughput") -> list[float]:
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    return [value for _, value in analysis.finding(arm, metric).blocks]


THREADS = {"parser": "{name: sysbench, parts: {threads: threads}}", "conditions": "{threads: any}"}


def test_reports_of_one_log_are_runs(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="are the same run") as error:
        case("01", tmp_path)
    assert "their reports say threads 4 and 8" in (error.value.hint or "")
    made = case("01", tmp_path, **THREADS)
    assert rates(made, "threads")["bare", "4"] == [100.0]
    assert rates(made, "threads")["bare", "8"] == [200.0]
    latencies = {
        run.record.levels["threads"]: (m.latency.mean_ms, m.latency.p95_ms, m.windows)
        for run in made.runs
        if run.record.arm == "bare" and (m := run.record.measurement)
    }
    assert latencies == {"4": (40.0, 41.11, ()), "8": (20.0, 21.0, ())}
    assert len({run.record.imported and run.record.imported.sha256 for run in made.runs}) == 4


def test_a_report_that_is_cut_off_is_not_part_of_the_one_before(tmp_path: Path) -> None:
    made = case("01", tmp_path, "input-cut", repetition="row")
    good = [run.record for run in made.runs if run.record.outcome.ok]
    assert [(run.arm, run.measurement and run.measurement.throughput_per_s) for run in good] == [
        ("bare", 100.0),
        ("docker", 90.0),
    ]
    assert all(run.measurement and len(run.measurement.windows) == 10 for run in good)
    failed = [run.record.outcome.reason or "" for run in made.runs if not run.record.outcome.ok]
    assert len(failed) == 2
    assert all("cut short: from line" in reason for reason in failed)


def test_a_repeated_heading_that_is_not_used_does_not_matter(tmp_path: Path) -> None:
    assert rates(case("02", tmp_path)) == {("bare",): [100.5, 101.5], ("docker",): [90.5, 91.5]}


def test_levels_decide_between_readings_of_a_name(tmp_path: Path) -> None:
    assert rates(case("03", tmp_path)) == {("bare",): [100.0], ("container",): [90.0]}
    made = case("03", tmp_path, "input-star", "mapping-star.yaml")
    assert rates(made) == {("bare",): [100.0], ("docker",): [90.0], ("gvisor",): [50.0]}


def test_rows_without_a_number_are_numbered_when_the_mapping_says_so(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="are the same run") as error:
        case("04", tmp_path)
    assert "repetition: row" in (error.value.hint or "")
    made = case("04", tmp_path, repetition="row")
    assert overheads(made, "docker") == pytest.approx([-0.1, 92 / 102 - 1])


def test_latency_alone_or_a_count_and_a_duration_are_enough(tmp_path: Path) -> None:
    made = case("05", tmp_path)
    assert overheads(made, "docker", "latency_mean") == pytest.approx([0.1])
    assert made.plan.study.imported is not None
    assert made.plan.study.imported.primary == "latency_mean"
    parser = (
        "{name: csv, parts: {sut: platform, run: run}, "
        "figures: {throughput: {count: transactions, duration: time_total, unit: s}}}"
    )
    assert rates(case("05", tmp_path, parser=parser)) == {("bare",): [50.0], ("docker",): [45.0]}


@pytest.mark.parametrize("name", ["06", "07"])
def test_sysbench_of_any_version_is_read(name: str, tmp_path: Path) -> None:
    figures = {
        run.record.arm: (m.throughput_per_s, m.latency.mean_ms, m.latency.p95_ms)
        for run in case(name, tmp_path).runs
        if (m := run.record.measurement)
    }
    slow = (90.0, 44.0, 66.0) if name == "06" else (100.0, 40.0, 60.0)
    others = {"06": ["docker"], "07": ["v05", "v10pre"]}[name]
    assert figures == {"bare": (100.0, 40.0, 60.0), **dict.fromkeys(others, slow)}


def test_an_import_that_compares_nothing_says_so(tmp_path: Path) -> None:
    (place,) = CASES.glob("09-*")
    command = ["import", str(place / "mapping.yaml"), str(place / "input"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    assert "no block has good runs of bare and another arm" in result.output
    assert "{time} differs between the arms" in result.output


def test_kinds_of_a_profile_have_latencies(tmp_path: Path) -> None:
    kinds = {
        kind: each.latency.mean_ms
        for run in case("10", tmp_path).runs
        if run.record.arm == "profile" and run.record.measurement
        for kind, each in run.record.measurement.by_operation.items()
    }
    assert kinds == {"insert": 1.0, "latest": 2.0}


def test_an_unknown_parser_is_told_with_all_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="unknown value 'wrk'") as error:
        case("12", tmp_path, parser="{name: wrk}")
    assert "and csv for the table of any tool" in (error.value.hint or "")


def test_a_table_without_a_heading_is_named_by_the_mapping(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has no column") as error:
        case("14", tmp_path)
    assert "headings: [...]" in (error.value.hint or "")
    for column in ("ops", "3"):
        figures = f"{{throughput: {{column: {column}, unit: /s}}}}"
        parser = f"{{name: csv, headings: [sut, run, ops], parts: {{sut: sut, run: run}}, figures: {figures}}}"
        made = case("14", tmp_path, parser=parser)
        assert rates(made) == {("bare",): [100.0], ("docker",): [90.0]}


def test_columns_are_levels_of_a_part(tmp_path: Path) -> None:
    made = case("15", tmp_path, parser="{name: csv, wide: {part: sut, columns: [metal, docker]}}", repetition="row")
    assert overheads(made, "docker") == pytest.approx([-0.1, 92 / 102 - 1])
    made = case(
        "15",
        tmp_path,
        parser="{name: csv, parts: {sut: sut}, wide: {part: run, columns: [run 1, run 2]}}",
        files="wide-runs.csv",
        repetition="run",
    )
    assert rates(made) == {("bare",): [100.0, 102.0], ("docker",): [90.0, 92.0]}


def test_any_text_makes_a_level(tmp_path: Path) -> None:
    made = case("17", tmp_path)
    assert rates(made, "command") == {
        ("bare", "SET"): [100_000.0],
        ("docker", "SET"): [90_000.0],
        ("bare", "LRANGE_100-first-100-elements"): [60_000.0],
        ("docker", "LRANGE_100-first-100-elements"): [54_000.0],
    }


@pytest.mark.parametrize("texts", ["others", "[PING]"])
def test_rows_are_left_out_and_counted(texts: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"'PING' of .* is not a level") as error:
        case("18", tmp_path)
    assert "leave_out" in (error.value.hint or "")
    made = case("18", tmp_path, leave_out=f"{{command: {texts}}}")
    assert sorted(overheads(made, "docker")) == pytest.approx([-0.1, -0.05])
    assert made.left_out == {"command 'PING'": 2}


def test_a_report_without_throughput_answers_by_its_metric(tmp_path: Path) -> None:
    made = case("05", tmp_path)
    report = build_report(made.plan.study, [run.record for run in made.runs])
    assert "mean latency" in report.answer
    assert "+10" in terminal.render(report, width=120)
