"""Tables without a mapping: figures whose heading says what they are, and rows that are runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.imports.guess.test_guess import imported
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.imports import Import
from tare.imports.guess import guess, survey

ROWS = """\
platform,concurrency,req_per_sec,lat_mean_us,lat_max_us
metal,10,100,250,9000
docker,10,90,300,9000
metal,20,200,260,9000
docker,20,150,310,9000
"""


def written(tmp_path: Path, files: Mapping[str, str]) -> Path:
    place = tmp_path / "tables"
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_rows_are_runs_of_a_platform_and_a_setting(tmp_path: Path) -> None:
    place = written(tmp_path, {"all.csv": ROWS})
    assert guess(survey(place)).found == (
        "4 runs in 1 table",
        "throughput from the column 'req_per_sec', in /s",
        "latency_mean from the column 'lat_mean_us', in us",
        "not read: 'lat_max_us'",
        "factor platform from the column 'platform': docker, metal",
        "condition concurrency from the column 'concurrency': 10, 20",
        "baseline: metal",
    )
    rates = {
        (run.record.arm, run.record.levels["concurrency"]): (
            run.record.measurement.throughput_per_s,
            run.record.measurement.latency.mean_ms,
        )
        for run in imported(place, tmp_path).runs
        if run.record.measurement
    }
    assert rates == {
        ("metal", "10"): (100.0, 0.25),
        ("docker", "10"): (90.0, 0.3),
        ("metal", "20"): (200.0, 0.26),
        ("docker", "20"): (150.0, 0.31),
    }


def test_platforms_are_read_from_the_names_of_tables(tmp_path: Path) -> None:
    table = "run;tps\n1;{}\n2;{}\n"
    place = written(tmp_path, {"bare.csv": table.format(100, 102), "kata.csv": table.format(90, 92)})
    runs = imported(place, tmp_path).runs
    assert [(run.record.arm, run.record.block) for run in runs] == [
        ("bare", 1),
        ("kata", 1),
        ("bare", 2),
        ("kata", 2),
    ]


def test_a_column_that_one_table_has_alone_is_left_out(tmp_path: Path) -> None:
    more = "run;vm_exits;tps\n1;7;90\n2;8;92\n"
    place = written(tmp_path, {"bare.csv": "run;tps\n1;100\n2;102\n", "kata.csv": more})
    rates = [
        run.record.measurement.throughput_per_s for run in imported(place, tmp_path).runs if run.record.measurement
    ]
    assert rates == [100.0, 90.0, 102.0, 92.0]


@pytest.mark.parametrize(
    "table",
    [
        "Time (seconds),Throughput (requests/second)\n0,100\n5,101\n10,99\n",
        "platform,throughput_mib,lat_max_us\ndocker,100,3\nmetal,90,4\n",
    ],
    ids=["windows-are-no-runs", "bytes-and-extremes"],
)
def test_what_may_be_something_else_is_no_figure(table: str, tmp_path: Path) -> None:
    place = written(tmp_path, {"docker.csv": table, "metal.csv": table})
    with pytest.raises(StudyError, match=r"no good report .* but 2 tables"):
        guess(survey(place))


TIDY = """\
metric,unit,platform,threads,value
tps,,docker,4,90
avg latency,ms,docker,4,3
cpu,%,docker,4,80
tps,,docker,8,95
avg latency,ms,docker,8,4
tps,,bare,4,100
avg latency,ms,bare,4,2
tps,,bare,8,110
avg latency,ms,bare,8,2.5
"""


def figures(made: Import, *conditions: str) -> dict[tuple[str, ...], tuple[float | None, float | None]]:
    """(Arm, levels of conditions) → throughput and mean latency in ms."""
    return {
        (run.record.arm, *(run.record.levels[each] for each in conditions)): (
            run.record.measurement.throughput_per_s,
            run.record.measurement.latency.mean_ms,
        )
        for run in made.runs
        if run.record.measurement
    }


def test_rows_of_one_metric_each_are_a_run(tmp_path: Path) -> None:
    assert figures(imported(written(tmp_path, {"all.csv": TIDY}), tmp_path), "threads") == {
        ("bare", "4"): (100.0, 2.0),
        ("bare", "8"): (110.0, 2.5),
        ("docker", "4"): (90.0, 3.0),
        ("docker", "8"): (95.0, 4.0),
    }


@pytest.mark.parametrize(
    ("name", "heading"), [("tpch_seconds.csv", "query,native,docker"), ("tpch.csv", "query,native (s),docker (s)")]
)
def test_durations_in_a_column_for_each_platform_are_runs_if_their_unit_is_told(
    name: str, heading: str, tmp_path: Path
) -> None:
    heading = heading.replace("(s)", "time (s)")
    place = written(tmp_path, {name: f"{heading}\nQ1,1.5,1.6\nQ2,0.5,0.7\n"})
    assert not guess(survey(place)).doubts
    durations = [times for _, times in figures(imported(place, tmp_path), "query").values()]
    assert sorted(each or 0.0 for each in durations) == [500.0, 700.0, 1500.0, 1600.0]


def test_columns_that_are_numbered_are_repetitions(tmp_path: Path) -> None:
    place = written(tmp_path, {"tps.csv": "sut,run 1,run 2\nmetal,100,102\ndocker,90,92\n"})
    runs = [(run.record.arm, run.record.block, run.record.measurement) for run in imported(place, tmp_path).runs]
    assert [(arm, block, measured and measured.throughput_per_s) for arm, block, measured in runs] == [
        ("metal", 1, 100.0),
        ("docker", 1, 90.0),
        ("metal", 2, 102.0),
        ("docker", 2, 92.0),
    ]


@pytest.mark.parametrize(
    ("table", "doubt"),
    [
        ("platform,ops,lat\nmetal,100,3\ndocker,90,4\n", "the column 'ops': taken for throughput per second"),
        ("platform,latency\nmetal,100\ndocker,90\n", "the column 'latency': taken for latency mean in ms"),
        ("metal,1,100\ndocker,1,90\n", "column 3: taken for throughput per second"),
        ("metal,docker\n100,90\n", "the columns 'metal', 'docker': taken for throughput per second"),
    ],
)
def test_a_metric_that_nothing_names_is_imported_only_by_hand(table: str, doubt: str, tmp_path: Path) -> None:
    place = written(tmp_path, {"all.csv": table})
    assert guess(survey(place)).doubts == (doubt,)
    made = [each for pair in figures(imported(place, tmp_path)).values() for each in pair if each is not None]
    assert made == [100.0, 90.0]
    mapping = tmp_path / "all.yaml"
    result = CliRunner().invoke(app, ["import", str(place), "--yes", "--write", str(mapping)])
    assert isinstance(result.exception, StudyError)
    assert f"is this right? {doubt}" in result.output
    assert "# guess: nothing says so" in mapping.read_text()


def test_one_column_of_numbers_is_runs_that_only_somebody_can_name(tmp_path: Path) -> None:
    place = written(tmp_path, {"bare.csv": "1493.8\n1497.2\n", "docker.csv": "1511.4\n1509.0\n"})
    assert guess(survey(place)).doubts == ("column 1: taken for throughput per second",)
    assert sorted(figures(imported(place, tmp_path))) == [("bare",), ("docker",)]


def test_time_on_a_cpu_is_no_latency(tmp_path: Path) -> None:
    place = written(tmp_path, {"all.csv": "platform,load_seconds,cpu_user_time_seconds\nmetal,2,9\ndocker,3,8\n"})
    assert figures(imported(place, tmp_path)) == {("metal",): (None, 2000.0), ("docker",): (None, 3000.0)}
