"""`tare trend`: stores in time, whatever order they are given in, and what changed with the overhead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import known, store_of
from typer.testing import CliRunner, Result

from tare.cli import app
from tare.errors import StudyError

BARE = [1000.0, 1010.0, 990.0, 1005.0, 995.0]
AGAIN = [1001.0, 1008.0, 991.0, 1006.0, 994.0]
DAY = 86_400.0


def nightly(folder: Path, day: int, share: float) -> Path:
    """A store of one night; from the fourth on the engine is newer."""
    host = [share * rate * (1 + 0.002 * ((block + day) % 3 - 1)) for block, rate in enumerate(BARE)]

    def change(tree: dict[str, Any]) -> None:
        for time in tree["phases"]:
            time["began_at"] += day * DAY
        tree["engine"].update(engine_version="29.0" if day >= 4 else "28.1")

    records = [
        synthetic.changed(each, change) for each in known({"bare": BARE, "host": host, "baseline-again": AGAIN})
    ]
    return store_of(folder / f"night-{day}", records)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("nights")
    return [nightly(folder, day, 0.97 if day < 4 else 0.88) for day in range(8)]


def run(*argv: object) -> Result:
    return CliRunner().invoke(app, ["trend", *map(str, argv)], env={"COLUMNS": "120"})


def test_the_change_stands_at_its_store_with_what_differs(nights: list[Path]) -> None:
    done = run(*nights[::-1])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert f"From {nights[4]} on: host, throughput -9" in text
    assert "engine_version: 28.1 \N{RIGHTWARDS ARROW} 29.0" in text


def test_json_has_the_stores_in_time_and_the_changes(nights: list[Path]) -> None:
    tree = json.loads(run(*nights[::-1], "--format", "json").stdout)
    assert [each["store"] for each in tree["stores"]] == [str(night) for night in nights]
    (series,) = tree["series"]
    (change,) = series["changes"]
    assert change["from"] == 4
    assert change["low"] < 0.88 / 0.97 - 1 < change["high"]
    assert [each["name"] for each in tree["stores"][4]["unlike"]] == ["engine_version"]


def test_markdown_has_a_row_a_store(nights: list[Path]) -> None:
    text = run(*nights, "--format", "md").stdout
    assert text.count("| 5 |") == len(nights)
    assert "from here on" in text


def test_a_store_given_twice_is_refused(nights: list[Path]) -> None:
    with pytest.raises(StudyError, match="given twice"):
        CliRunner().invoke(app, ["trend", str(nights[0]), str(nights[0])], catch_exceptions=False)


def test_a_metric_that_the_stores_lack_is_refused(nights: list[Path]) -> None:
    with pytest.raises(StudyError, match="no arm of all stores has a metric 'througput'"):
        CliRunner().invoke(app, ["trend", *map(str, nights), "--metric", "througput"], catch_exceptions=False)
