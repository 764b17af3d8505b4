"""Reading a recording of tare-probe's, and refusing what is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tare.errors import StoreError
from tare.store.trace import is_trace, read_trace

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trace"


def test_a_real_recording_is_read_whole() -> None:
    trace = read_trace(RECORDED)
    assert trace.complete
    assert (trace.cpus, trace.user_hz, trace.period_ns) == (2, 100, 500_000_000)
    assert trace.quantum("cgroup", "usage_ns") == 4_000_000
    assert trace.quantum("cgroup", "memory_bytes") is None
    cgroup = trace.table("cgroup")
    assert cgroup is not None
    assert cgroup["name"].dtype == pl.String
    assert set(cgroup["name"]) == {"db"}
    assert trace.table("perf") is None


def test_a_directory_without_a_trace_is_told_with_what_makes_one(tmp_path: Path) -> None:
    assert not is_trace(tmp_path)
    with pytest.raises(StoreError, match=r"contains no trace.*tare-probe record"):
        read_trace(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps({"header": {"trace_version": 2}}))
    with pytest.raises(StoreError, match="version 2, this tare reads version 1"):
        read_trace(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"header": null}', '{"header": 3}'])
def test_a_damaged_head_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(StoreError) as raised:
        read_trace(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_damaged_table_is_told_with_what_mends_it(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    (tmp_path / "trace" / "cpu.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(StoreError, match="tare-probe convert"):
        read_trace(tmp_path / "trace")


def test_a_table_that_is_missing_or_short_is_no_quietly_shorter_trace(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    disk = tmp_path / "trace" / "disk.parquet"
    pl.read_parquet(disk)[:5].write_parquet(disk)
    with pytest.raises(StoreError, match=r"disk.parquet has 5 of the 8 rows"):
        read_trace(tmp_path / "trace")
    disk.unlink()
    with pytest.raises(StoreError, match=r"disk.parquet has 0 of the 8 rows"):
        read_trace(tmp_path / "trace")


def test_a_header_without_what_is_needed_is_told(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps({"header": {"trace_version": 1}}))
    with pytest.raises(StoreError, match="has no 'cpus' in its header"):
        read_trace(tmp_path)
    head = json.loads((RECORDED / "trace.json").read_text())
    del head["header"]["started_monotonic_ns"]
    (tmp_path / "trace.json").write_text(json.dumps(head))
    with pytest.raises(StoreError, match="has no 'started_monotonic_ns' in its header"):
        read_trace(tmp_path)


def test_a_journal_that_waits_is_told_with_what_makes_tables_of_it(tmp_path: Path) -> None:
    (tmp_path / "journal.tare").touch()
    with pytest.raises(StoreError, match="tare-probe convert"):
        read_trace(tmp_path)


def test_events_are_read_also_of_a_target_that_has_no_name(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    one = {"tick": 1, "target": 3, "name": "sut", "at_ns": 5, "what": "vanished", "detail": "pid 7"}
    events = pl.DataFrame([one, one | {"name": None, "what": "not_found"}])
    events.write_parquet(tmp_path / "trace" / "event.parquet")
    table = read_trace(tmp_path / "trace").table("event")
    assert table is not None
    assert table.equals(events)
    events.with_columns(at_ns=pl.lit(None, dtype=pl.Int64)).write_parquet(tmp_path / "trace" / "event.parquet")
    with pytest.raises(StoreError, match="its column at_ns has unknown values"):
        read_trace(tmp_path / "trace")


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("cpu", "t0_ns", pl.lit("x")),
        ("interface", "tx_bytes", pl.lit([1])),
        ("cgroup", "usage_ns", pl.lit(None)),
        ("tick", "woke_ns", pl.lit(None, dtype=pl.Int64)),
        ("disk", "name", pl.lit(7)),
        ("disk", "name", pl.lit(None, dtype=pl.String)),
    ],
)
def test_a_column_of_another_type_is_told_as_the_file_reads(
    tmp_path: Path, table: str, column: str, kind: pl.Expr
) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    file = tmp_path / "trace" / f"{table}.parquet"
    pl.read_parquet(file).with_columns(kind.alias(column)).write_parquet(file)
    with pytest.raises(StoreError, match=rf"{table}.parquet cannot be read: its column {column}"):
        read_trace(tmp_path / "trace")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("header", "cpus"), "two"),
        (("header", "page_bytes"), 0),
        (("header", "period_ns"), None),
        (("header", "ticks"), []),
        (("header", "ticks", "user_hz"), {}),
        (("header", "started_monotonic_ns"), "x"),
        (("quanta", "disk"), 4),
        (("quanta", "disk", "busy_ms"), []),
    ],
)
def test_a_header_without_numbers_is_told(tmp_path: Path, place: tuple[str, ...], value: object) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    head = json.loads((RECORDED / "trace.json").read_text())
    inner = head
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / "trace" / "trace.json").write_text(json.dumps(head))
    with pytest.raises(StoreError, match=r"trace\.json has no whole numbers"):
        read_trace(tmp_path / "trace")
