"""Frames of a store: tidy, typed, documented, and nothing is lost on the way into a file."""

from __future__ import annotations

import csv
import io
import math
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.views.test_of_run import of_arm, store_with
from tests.unit.stores import known, store_of
from typer.testing import CliRunner

import tare
from tare.analyze import guest
from tare.analyze.metrics import METRICS
from tare.cli import app
from tare.errors import StoreError, StudyError
from tare.record.made_by import GuestClock, GuestFacts
from tare.record.observation import Observation, Parity
from tare.record.run_record import Phase
from tare.report.frames import estimates, observations, samples
from tare.report.frames.files import as_csv, as_parquet
from tare.report.frames.results import Results
from tare.store import open_store
from tare.store.schema import FORMAT, connect

ARMS = ("bare", "bridge")
RATES = {"bare": [1000.0, 2000.0, 4000.0], "bridge": [500.0, 1000.0, 2200.0]}
DOCUMENTED = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "python.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = [*known(RATES), synthetic.record(4, "bare", 1000.0), synthetic.record(4, "bridge", None, position=1)]
    return tare.open_store(store_of(tmp_path_factory.mktemp("frames") / "store", made))


def test_an_observation_is_a_metric_of_a_run_that_counts(opened: Results) -> None:
    frame = opened.observations()
    assert frame.height == 7 * len(METRICS)
    throughput = frame.filter(metric="throughput").sort("block", "arm")
    assert throughput.filter(block=3)["value"].to_list() == [4000.0, 2200.0]
    assert throughput["unit"].unique().to_list() == ["transactions/s"]
    first = throughput.filter(block=1, arm="bridge").row(0, named=True)
    assert first["began_at"] == datetime.fromtimestamp(synthetic.BEGAN_AT + 60 + 10 + 1, UTC)
    assert (first["measured_s"], first["baseline"], first["is_baseline"], first["control"]) == (
        4.0, "bare", False, False,
    )  # fmt: skip
    assert first["factor_path"] == "bridge"


def test_a_failed_run_is_no_observation_and_what_is_not_known_is_null(opened: Results) -> None:
    frame = opened.observations()
    assert frame.filter(block=4)["arm"].unique().to_list() == ["bare"]
    # The made-up records tell of no block I/O.
    assert frame.filter(metric="io_per_operation")["value"].null_count() == 7


def test_estimates_follow_from_the_observations_by_hand(opened: Results) -> None:
    wide = opened.observations().filter(metric="throughput").pivot("arm", index="block", values="value")
    logs = wide.drop_nulls().select((pl.col("bridge") / pl.col("bare")).log().alias("log"))["log"].to_list()
    assert logs == pytest.approx([math.log(0.5), math.log(0.5), math.log(0.55)])
    text = opened.estimates().filter(metric="throughput", arm="bridge").row(0, named=True)
    assert text["point"] == pytest.approx(math.exp(sum(logs) / 3) - 1)
    spread = math.sqrt(sum((each - sum(logs) / 3) ** 2 for each in logs) / 2)
    reach = 4.302652729749464 * spread / math.sqrt(3)  # t(2; 0.975), any printed table of Student's t: 4.303
    assert text["low"] == pytest.approx(math.exp(sum(logs) / 3 - reach) - 1)
    assert (text["n"], text["factor_path"], text["valid"]) == (3, "bridge", True)


def test_samples_are_seconds_from_the_beginning_of_measuring(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    frame = Results(store).samples(of_arm(store, "bridge").run_id)
    assert frame.schema == pl.Schema(samples.COLUMNS)
    real = frame.filter(source="tool").sort("to_s")
    assert real["value"].unique().to_list() == [60.0]
    assert real["unit"].unique().to_list() == ["%"]
    # Samples end at 1.5, 2.5 … 9.5 s; measuring was from 2 to 8 s.
    assert real["to_s"].to_list() == pytest.approx([each - 0.5 for each in range(9)])
    assert real["phase"].to_list() == [None, *["measure"] * 6, None, None]
    assert real["kept"].to_list() == [False, *[True] * 6, False, False]
    viewed = frame.filter(source="trace", tool="docker-stats", quantity="cpu_percent", subject="sut")
    assert viewed["value"].drop_nulls().to_list() == pytest.approx([60.0] * viewed["value"].count())


def test_what_a_virtual_machine_counted_of_itself_is_beside_the_trace_in_every_stage(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    raw = (Path(__file__).resolve().parents[2] / "data" / "vm" / "guest.jsonl").read_bytes()
    first, later = store.records()[:2]
    store.raw(first, guest.FILE).write_bytes(raw)
    began_s = next(each.monotonic_s or 0.0 for each in first.phases if each.phase is Phase.MEASURE)
    # The second line, at an uptime of 13.17 s, is of the third second of measuring.
    at_ns = round((began_s + 2.0) * 1e9)
    clock = GuestClock(13.17, at_ns, at_ns)
    seen = Parity(sut=Observation(guest=GuestFacts(clock=clock)))
    inside = first.model_copy(update={"parity": seen, "emulated": ("sut",)})
    stage = later.model_copy(update={"parity": seen, "continues": first.run_id, "attempt": first.attempt})
    for run in (inside, stage):
        frame = samples.samples(store, run).filter(source="guest")
        assert frame["tool"].unique().to_list() == ["tare-guest"]
        assert dict(frame.select("quantity", "unit").unique().iter_rows()) == guest.UNITS
    frame = samples.samples(store, inside).filter(source="guest", quantity="memory_bytes", subject="sut")
    assert frame["emulated"].all()
    assert frame["to_s"].to_list()[1] == pytest.approx(2.0)
    assert frame["phase"].to_list()[1] == "measure"
    unseen = first.model_copy(update={"parity": Parity()})
    assert samples.samples(store, unseen).filter(source="guest").is_empty()


def test_windows_of_the_generator_are_samples(tmp_path: Path) -> None:
    windows = [
        {"end_s": 1.0, "throughput_per_s": 10.0, "queue_length": None},
        {"end_s": 2.5, "throughput_per_s": 8.0},
    ]
    run = synthetic.changed(known(RATES)[0], lambda tree: tree["measurement"].update(windows=windows))
    store = tare.open_store(store_of(tmp_path / "store", [run], synthetic.study(ARMS)))
    frame = store.samples(store.observations()["run_id"][0])
    assert frame.select("from_s", "to_s", "value", "unit", "phase").rows() == [
        (0.0, 1.0, 10.0, "/s", "measure"),
        (1.0, 2.5, 8.0, "/s", "measure"),
    ]


def test_windows_lie_where_the_generator_drove(tmp_path: Path) -> None:
    def late(tree: dict[str, Any]) -> None:
        tree["measurement"].update(windows=[{"end_s": 1.0, "throughput_per_s": 10.0}])
        driven = {"began_monotonic_s": 103.5, "ended_monotonic_s": 109.0, "by": "generator"}
        tree["usage"] = {"began_monotonic_s": 100.0, "ended_monotonic_s": 110.0, "driven": driven}

    run = synthetic.changed(known(RATES)[0], late)
    store = tare.open_store(store_of(tmp_path / "store", [run], synthetic.study(ARMS)))
    frame = store.samples(store.observations()["run_id"][0])
    assert frame.select("from_s", "to_s", "value").rows() == [(3.5, 4.5, 10.0)]


def test_a_run_that_is_not_there_and_no_interval_are_refused(opened: Results) -> None:
    with pytest.raises(StudyError, match=r"has no run b1\ufffd"):
        opened.samples("b1\n")
    with pytest.raises(StudyError, match="no interval"):
        opened.samples("b01-0-bare", every_s=0)


def test_without_a_good_run_there_are_columns_and_no_point(tmp_path: Path) -> None:
    made = [synthetic.record(1, "bare", None), synthetic.record(1, "bridge", None, position=1)]
    path = store_of(tmp_path / "store", made)
    empty = tare.open_store(path)
    assert empty.observations().shape == (0, len(observations.COLUMNS) + 1)
    assert empty.estimates()["point"].null_count() == 2 * len(METRICS)  # bridge and the control
    assert empty.samples(open_store(path).records()[0].run_id).height == 0


def test_a_store_of_a_newer_tare_is_refused(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store", known(RATES))
    with connect(path / "store.sqlite", read_only=False).begin() as connection:
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(StoreError, match="newer tare"):
        tare.open_store(str(path))


def test_pandas_has_the_same_values(opened: Results) -> None:
    frame = opened.observations()
    table = frame.to_pandas()
    assert list(table.columns) == frame.columns
    assert table["value"].dropna().to_list() == frame["value"].drop_nulls().to_list()


@pytest.mark.parametrize("style", ["csv", "parquet"])
@pytest.mark.parametrize("table", ["estimates", "observations"])
def test_a_file_holds_the_frame(opened: Results, tmp_path: Path, style: str, table: str) -> None:
    target = tmp_path / f"{table}.{style}"
    argv = ["report", str(opened.path), "--format", style, "--table", table, "--output", str(target)]
    assert CliRunner().invoke(app, argv).exit_code == 0
    frame = getattr(opened, table)()
    if style == "parquet":
        assert pl.read_parquet(target).equals(frame)
        return
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == frame.columns
    number = "value" if table == "observations" else "point"
    assert [float(row[number]) if row[number] else None for row in rows] == frame[number].to_list()


def test_a_table_of_another_format_is_refused(opened: Results) -> None:
    error = CliRunner().invoke(app, ["report", str(opened.path), "--table", "observations"]).exception
    assert isinstance(error, StudyError)


HOSTILE = ["<script>", "=1+2", "x" * 10_000, 'a"b,c\nd', "\u202eevil\u202c", "\x1b[31m"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_kept_and_break_no_row(name: str) -> None:
    study, made = synthetic.study(("bare", name)), synthetic.records(("bare", name), 3)
    frame = observations.observations(study, made)
    assert set(frame["arm"]) == {"bare", name}
    assert pl.read_parquet(io.BytesIO(as_parquet(frame))).equals(frame)
    rows = list(csv.DictReader(io.StringIO(as_csv(frame), newline="")))
    assert len(rows) == frame.height
    assert {row["arm"].lstrip("'") for row in rows} == {"bare", name}
    assert not any(cell[:1] in "=+@\t\r" for row in rows for cell in row.values() if cell)


@pytest.mark.parametrize(
    ("heading", "columns"),
    [("Observations", observations.COLUMNS), ("Estimates", estimates.COLUMNS), ("Samples", samples.COLUMNS)],
)
def test_every_column_is_documented(heading: str, columns: dict[str, object]) -> None:
    section = DOCUMENTED.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    assert set(columns) - set(re.findall(r"`([^`]+)`", section)) == set()


def test_importing_tare_loads_nothing_else() -> None:
    code = "import sys, tare; sys.exit(bool({'polars', 'numpy', 'pandas', 'sqlalchemy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
