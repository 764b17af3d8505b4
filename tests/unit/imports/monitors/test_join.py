"""Logs of monitors are joined to the runs that they overlap, and become their usage."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from tests.unit.imports.test_mapping import written
from typer.testing import CliRunner

from tare.cli import app
from tare.imports import Import, collect, load_mapping
from tare.record.run_record import RunRecord
from tare.store import open_store, verify

DATA = Path(__file__).parents[3] / "data"
BEGAN, TOOK = 1_700_000_000, 60
"""2023-11-14 22:13:20 UTC."""
HEAD = (
    '"Dstat 0.7.3 CSV output"\n"Host:","db1",,,,"User:","root"\n'
    '"Cmdline:","dstat -tcd",,,,"Date:","14 Nov 2023 23:12:00 ZONE"\n'
    '"system","total cpu usage",,,,,,"dsk/sda",,"sda"\n'
    '"time","usr","sys","idl","wai","hiq","siq","read","writ","util"\n'
)


def dstat(first: int, last: int, hours: int = 1, zone: str = "CET") -> str:
    """A row each second; the second since the run's start is the share of user time, and 30 outside of it."""
    rows = []
    for second in range(first, last + 1):
        minute, of_minute = divmod(13 * 60 + 20 + second, 60)
        user = 50 if 0 < second <= TOOK else 0
        figures = f"{user},10,{90 - user},0,0,0,2048,{1024 * user},{user}"
        rows.append(f"14-11 {22 + hours:02d}:{minute:02d}:{of_minute:02d},{figures}\n")
    return HEAD.replace("ZONE", zone) + rows[0] + "".join(rows)


def summary(began: int = BEGAN) -> str:
    tree = json.loads((DATA / "imports" / "benchbase" / "tpcc.summary.json").read_text())
    tree |= {"Start timestamp (milliseconds)": began * 1000, "Elapsed Time (nanoseconds)": TOOK * 10**9}
    return json.dumps(tree)


def made(tmp_path: Path, logs: dict[str, str], monitors: str = "{}", parser: str = "benchbase") -> Import:
    place = tmp_path / "results"
    place.mkdir()
    if parser == "benchbase":
        (place / "bare-1.json").write_text(summary())
        (place / "docker-1.json").write_text(summary(BEGAN + 600))
    for name, text in logs.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    return collect(load_mapping(mapping(tmp_path, monitors, parser)), place)


def mapping(tmp_path: Path, monitors: str = "{}", parser: str = "benchbase") -> Path:
    text = (
        f"format: 1\nname: others\nquestion: What?\nfiles: '{{sut}}-{{rep}}.json'\nparser: {{name: {parser}}}\n"
        "factors: {sut: {bare: bare, docker: docker}}\nbaseline: bare\nrepetition: rep\n"
        f"leave_out: {{sut: others}}\nmonitors: {monitors}\n"
    )
    return written(tmp_path, text)


def of(made: Import) -> dict[str, RunRecord]:
    return {run.record.arm: run.record for run in made.runs}


def test_a_log_over_both_runs_joins_the_one_that_it_covers_with_the_offset_that_was_assumed(tmp_path: Path) -> None:
    """CET is an hour ahead of the runs' UTC, which no log of dstat says in a way that can be trusted."""
    result = made(tmp_path, {"dstat.csv": dstat(-20, 90)}, "{cpus: 4}")
    runs = of(result)
    assert runs["docker"].usage is None
    usage = runs["bare"].usage
    assert usage is not None
    assert usage.machine is not None
    assert usage.machine["user"] == pytest.approx(0.5 * 4 * TOOK)
    assert usage.machine["system"] == pytest.approx(0.1 * 4 * TOOK)
    assert usage.disk is not None
    assert usage.disk.name == "sda"
    assert usage.disk.busy == pytest.approx(0.5)
    assert usage.disk.read_bytes_per_s == 2048
    assert usage.wall_s == usage.ended_monotonic_s == TOOK
    assert runs["bare"].monitors is not None
    entry = runs["bare"].monitors["dstat"]
    assert (entry.offset_s, entry.interval_s, entry.file) == (-3600.0, 1.0, "dstat.csv")
    assert runs["bare"].notices == ("samples of dstat: its clock -01:00 (assumed: so the log covers the runs)",)
    assert result.monitors == ("dstat joined to 1 run: its clock -01:00 (assumed: so the log covers the runs)",)
    (table,) = [run.tables for run in result.runs if run.tables]
    samples = pl.read_parquet(io.BytesIO(table["monitors/dstat.parquet"])).filter(pl.col("quantity") == "user")
    assert (samples.height, samples["from_ns"].min(), samples["to_ns"].max()) == (60, 0, 60_000_000_000)
    assert samples["subject"].unique().to_list() == ["all"]


def test_clocks_that_are_known_need_no_assumption(tmp_path: Path) -> None:
    result = made(tmp_path, {"dstat.csv": dstat(-20, 90, hours=0, zone="UTC")})
    assert result.monitors == ("dstat joined to 1 run: its clock +00:00 (both clocks are UTC)",)
    bare = of(result)["bare"]
    assert bare.notices == ()
    assert bare.usage is not None
    assert bare.usage.machine is None  # dstat does not say how many CPUs there are


def test_an_offset_of_the_mapping_counts(tmp_path: Path) -> None:
    result = made(tmp_path, {"dstat.csv": dstat(-20, 90, hours=0)}, "{offset_s: 600}")
    assert of(result)["bare"].usage is None
    assert of(result)["docker"].usage is not None
    assert result.monitors == ("dstat joined to 1 run: its clock +00:10 (given by the mapping)",)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("dstat.csv", dstat(200, 230), "its clock covers none of them"),
        ("dstat-client.csv", dstat(-20, 90), "no run has the words of its name (client)"),
        ("vmstat.txt", (DATA / "monitor-logs" / "vmstat.txt").read_text(), "have no clock, and 2 runs"),
        (
            "docker/vmstat.txt",
            (DATA / "monitor-logs" / "vmstat.txt").read_text(),
            "says no times: give `interval_s`",
        ),
        ("sar.txt", (DATA / "monitor-logs" / "sar.txt").read_text() * 2, "time of the day twice"),
    ],
)
def test_a_log_that_is_of_no_run_is_told_with_the_reason(name: str, text: str, why: str, tmp_path: Path) -> None:
    result = made(tmp_path, {name: text})
    assert all(run.record.usage is None for run in result.runs)
    (sentence,) = result.monitors
    assert sentence.startswith(f"{name} ")
    assert why in sentence


def test_without_a_clock_a_log_of_one_run_counts_if_it_is_as_long(tmp_path: Path) -> None:
    """sysbench says no time of the day; the log has the words of one run's name."""
    report = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    logs = {name: (DATA / "monitor-logs" / name).read_text() for name in ("pidstat.txt", "sar.txt", "vmstat.txt")}
    long = logs["sar.txt"].splitlines()[0] + "\n\n03:00:00        CPU     %user     %idle\n"
    long += "".join(f"03:00:{second:02d}        all     50.00     50.00\n" for second in range(1, 40))
    files = {
        "bare-1.json": report, "docker-1.json": report, "bare-1/pidstat.txt": logs["pidstat.txt"],
        "bare-1/sar.txt": logs["sar.txt"], "docker-1/sar.txt": long,
    }  # fmt: skip
    result = made(tmp_path, files, parser="sysbench")
    usage = of(result)["bare"].usage
    assert usage is not None
    assert usage.client_cpu_s == pytest.approx((11.43 + 18.0 + 16.0) / 300 * 3.0033)
    assert usage.machine is not None
    assert sum(usage.machine.values()) == pytest.approx(2 * 3.0033, rel=1e-3)
    assert usage.disk is not None
    assert usage.disk.name == "vda"
    assert of(result)["docker"].usage is None
    assert any("do not take as long: 39 s, and 3.0033 s" in sentence for sentence in result.monitors)


def test_a_container_by_its_name_is_the_server(tmp_path: Path) -> None:
    stats = (DATA / "monitor-logs" / "docker-stats.txt").read_text()
    report = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    files = {"bare-1.json": report, "docker-1.json": report, "docker-1/docker-stats.txt": stats}
    result = made(tmp_path, files, "{interval_s: 1.5, client: client}", parser="sysbench")
    usage = of(result)["docker"].usage
    assert usage is not None
    assert usage.sut_cpu_s == pytest.approx(3.0033)
    assert usage.client_cpu_s == pytest.approx(0.41 * 3.0033)


def test_the_store_has_the_samples_and_the_report_the_offset(tmp_path: Path) -> None:
    made(tmp_path, {"dstat.csv": dstat(-20, 90)}, "{cpus: 4}")
    command = [
        "import",
        str(mapping(tmp_path, "{cpus: 4}")),
        str(tmp_path / "results"),
        "--store",
        str(tmp_path / "s"),
    ]
    for _ in range(2):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "dstat joined to 1 run: its clock -01:00" in result.output
    store = open_store(tmp_path / "s")
    (run,) = [each for each in store.records() if each.monitors]
    assert (store.raw(run, "monitors") / "dstat.parquet").is_file()
    assert list(verify(store)) == []
    report = CliRunner().invoke(app, ["report", str(tmp_path / "s")])
    assert report.exit_code == 0, report.output
    assert "its clock -01:00" in " ".join(report.output.split())


def test_a_directory_with_logs_of_monitors_has_them_in_its_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, {"dstat.csv": dstat(-20, 90)})
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["import", "results", "--yes"])
    assert result.exit_code == 0, result.output
    assert "beside them: 1 log of dstat" in result.output
    assert "dstat joined to 1 run" in result.output


def test_logs_that_are_joined_to_no_run_for_one_reason_have_one_sentence(tmp_path: Path) -> None:
    text = (DATA / "monitor-logs" / "vmstat.txt").read_text()
    (sentence,) = made(tmp_path, {"vmstat.txt": text, "vmstat.log": text}).monitors
    assert sentence.startswith(
        "2 logs of vmstat, such as vmstat.log, are joined to no run: log or runs have no clock"
    )
