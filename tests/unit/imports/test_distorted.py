"""Known distortions of tools and tables, found in what a file says, with the figures that show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.imports.test_import import imported

from tare.analyze import analyze
from tare.cli.results.importing import copies
from tare.imports import Import
from tare.record.run_record import RunRecord

DATA = Path(__file__).parents[2] / "data"
BASE = (
    "format: 1\nname: others\nquestion: What?\nfiles: '{sut}{rest}'\nparser: {name: PARSER}\n"
    "factors: {sut: {bare: bare, docker: docker}}\nbaseline: bare\nignore: [rest]\n"
)
TABLE = BASE.replace("'{sut}{rest}'", "'*.csv'").replace("ignore: [rest]", "repetition: row")


def made(tmp_path: Path, parser: str, bare: str, docker: str) -> Import:
    place = tmp_path / "results"
    place.mkdir(exist_ok=True)
    (place / "bare.log").write_text(bare)
    (place / "docker.log").write_text(docker)
    return imported(tmp_path, place, BASE.replace("PARSER", parser))


def table(tmp_path: Path, text: str, parser: str) -> Import:
    place = tmp_path / "results"
    place.mkdir(exist_ok=True)
    (place / "t.csv").write_text(text)
    return imported(tmp_path, place, TABLE.replace("{name: PARSER}", parser))


def by_arm(made: Import) -> dict[str, RunRecord]:
    return {run.record.arm: run.record for run in made.runs}


def distortions(made: Import) -> dict[str, tuple[str, ...]]:
    return {run.record.arm: run.record.imported.distortions for run in made.runs if run.record.imported}


def alarms(made: Import) -> list[str]:
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    return [alarm.what for alarm in analysis.alarms if alarm.rule == "imported-distortion"]


def test_the_share_that_closing_takes_of_a_run_is_told(tmp_path: Path) -> None:
    """2 s of closing in a run of 7 s, as the driver's session of Cassandra takes."""
    plain = (DATA / "ycsb" / "hdr.stdout").read_text()
    slow = plain.replace("[CLEANUP], MaxLatency(us), 4", "[CLEANUP], MaxLatency(us), 240410")
    both = made(tmp_path, "ycsb", plain, slow)
    assert distortions(both) == {"bare": (), "docker": ("closing-in-runtime",)}
    (what,) = alarms(both)
    assert what.endswith("so throughput is too low, by up to 29.0 %")  # 240.41 ms of 829


def test_latencies_at_a_rate_from_the_actual_send_are_told(tmp_path: Path) -> None:
    text = (DATA / "ycsb" / "hdr.stdout").read_text()
    rate = 1.05 * 2000 / 0.829  # 5 % above what was done
    at_rate = f"Command line: -db tare.Echo -threads 2 -target {rate:.0f} -t\n{text}"
    both = made(tmp_path, "ycsb", at_rate, at_rate.replace(" -t\n", " -p measurement.interval=intended -t\n"))
    runs = by_arm(both)
    assert distortions(both) == {"bare": ("coordinated-omission",), "docker": ()}
    for arm, blind in (("bare", True), ("docker", False)):
        measured = runs[arm].measurement
        assert measured is not None
        assert measured.latency.blind_to_stalls is blind
        assert measured.details["delivered_share"] == pytest.approx((measured.throughput_per_s or 0) / round(rate))


def test_sysbench_at_a_rate_times_from_the_queue(tmp_path: Path) -> None:
    """Its latencies include the time in the queue (`queue_time`, sysbench.c), whatever interval lines it prints."""
    text = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    at_rate = text.replace("Number of threads", "Target transaction rate: 10/sec\nNumber of threads")
    both = made(tmp_path, "sysbench", text, at_rate)
    assert set(distortions(both).values()) == {()}
    blind = {arm: run.measurement and run.measurement.latency.blind_to_stalls for arm, run in by_arm(both).items()}
    assert blind == {"bare": True, "docker": False}


@pytest.mark.parametrize(
    ("asked", "expected"), [("10", ()), ("12", ("other-duration",)), ("9", ("other-duration",))]
)
def test_a_duration_other_than_the_command_asked_for_is_told(
    asked: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    text = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    text = text.replace("3.0033s", "10.0004s")
    repeated = f"+ sysbench cpu --threads=1 --time={asked} run\n{text}"
    both = made(tmp_path, "sysbench", text, repeated)
    assert distortions(both) == {"bare": (), "docker": expected}


def test_the_command_before_a_second_report_belongs_to_it(tmp_path: Path) -> None:
    text = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    log = "".join(f"$ sysbench cpu --time={seconds} run\n{text}" for seconds in (3, 4))
    place = tmp_path / "results"
    place.mkdir()
    for name in ("bare.log", "docker.log"):
        (place / name).write_text(log)
    text = BASE.replace("{name: PARSER}", "{name: sysbench, parts: {asked: duration}}")
    runs = imported(tmp_path, place, text + "conditions: {asked: any}\n").runs
    assert [(run.record.arm, run.record.levels["asked"]) for run in runs] == [
        ("bare", "3"), ("docker", "3"), ("bare", "4"), ("docker", "4"),
    ]  # fmt: skip


def test_a_duration_in_the_name_counts_where_no_report_says_it(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.mkdir()
    text = (DATA / "imports" / "pgbench" / "plain.txt").read_text().replace("duration: 3 s\n", "")
    for name in ("bare-3.txt", "docker-4.txt"):
        (place / name).write_text(text)
    mapping = (
        BASE.replace("{sut}{rest}", "{sut}-{duration}.txt")
        .replace("[rest]", "[duration]")
        .replace("PARSER", "pgbench")
    )
    assert distortions(imported(tmp_path, place, mapping)) == {"bare": (), "docker": ("other-duration",)}


def test_percentiles_that_are_averages_by_their_heading_are_told(tmp_path: Path) -> None:
    text = "sut,avg p95 ms,mean ms\nbare,10,2\ndocker,11,3\n"
    parser = "{{name: csv, parts: {{sut: sut}}, figures: {{{}: {{column: {}, unit: ms}}}}}}"
    averaged = table(tmp_path, text, parser.format("latency_p95", "avg p95 ms"))
    assert distortions(averaged) == dict.fromkeys(("bare", "docker"), ("percentiles-averaged",))
    assert alarms(averaged)[0].startswith("a percentile is an average by its heading")
    assert distortions(table(tmp_path, text, parser.format("latency_mean", "mean ms"))) == {
        "bare": (),
        "docker": (),
    }


WINDOWS = "".join(
    f"{sut},{second},{rate}\n" for sut, rate in (("bare", 100), ("docker", 90)) for second in range(6)
)
FIGURES = "figures: {throughput: {column: tps, unit: /s}}"


@pytest.mark.parametrize(
    ("text", "parser", "expected"),
    [
        (f"sut,Time (seconds),tps\n{WINDOWS}", f"{{name: csv, parts: {{sut: sut}}, {FIGURES}}}", True),
        (f"sut,run,tps\n{WINDOWS}", f"{{name: csv, parts: {{sut: sut}}, {FIGURES}}}", False),
        (
            "sut,time,tps\nbare,10,1\nbare,75,2\nbare,130,3\nbare,190,4\nbare,250,5\nbare,333,3\ndocker,400,1\n",
            f"{{name: csv, parts: {{sut: sut}}, {FIGURES}}}",
            False,
        ),
        (
            "second,bare,docker\n" + "".join(f"{n},{100 + n},{90 + n}\n" for n in range(1, 7)),
            "{name: csv, wide: {part: sut, columns: [bare, docker]}}",
            True,
        ),
    ],
)
def test_rows_that_are_windows_of_a_run_are_told(text: str, parser: str, expected: bool, tmp_path: Path) -> None:
    shown = distortions(table(tmp_path, text, parser))
    assert shown == dict.fromkeys(("bare", "docker"), ("windows-for-runs",) if expected else ())


def test_equal_rows_are_not_equal_files(tmp_path: Path) -> None:
    parser = f"{{name: csv, parts: {{sut: sut}}, {FIGURES}}}"
    both = table(tmp_path, "sut,tps\nbare,100\nbare,100\ndocker,90\ndocker,90\n", parser)
    assert len(both.runs) == 4
    assert copies(both) == []
    place = tmp_path / "results"
    (place / "u.csv").write_text((place / "t.csv").read_text())
    again = imported(tmp_path, place, TABLE.replace("{name: PARSER}", parser))
    assert copies(again) == [("t.csv", "u.csv")]


def test_an_equal_long_report_is_a_copy_in_any_log(tmp_path: Path) -> None:
    text = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
    place = tmp_path / "results"
    place.mkdir()
    (place / "bare.log").write_text(text.replace("3.0033s", "3.0034s"))
    (place / "docker.log").write_text(text + text)
    mapping = BASE.replace("PARSER", "sysbench") + "repetition: row\n"
    assert copies(imported(tmp_path, place, mapping)) == [("docker.log", "docker.log")]
