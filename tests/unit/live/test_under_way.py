"""Figures, resources and output of a run under way, read from real output of the real tools while it grows."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tare.live.journal import COLUMNS, TABLES, Journal, NotReadable, Row, newest_rows
from tare.live.now import Current, Now
from tare.live.output import Source, decode_engine_log, decode_text, lines_of, tails
from tare.live.traces import Follower as TraceFollower
from tare.live.under_way import RunFollower
from tare.live.windows import GENERATORS, Follower, Point, thinned
from tare.record.run_record import Phase

DATA = Path(__file__).resolve().parents[2] / "data"
REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "trace-format.md"
TOKEN = "0123456789ab"
CONTAINER = "ab" * 32


@pytest.mark.parametrize(
    ("generator", "output", "points", "last"),
    [
        ("sysbench", "sysbench/closed.stdout", 4, None),
        ("ycsb", "ycsb/both.stderr", 5, Point(3, 100.0, 0.0)),
        ("cassandra-stress", "cassandra-stress/mixed.stdout", 6, None),
    ],
)
def test_windows_are_read_as_they_come_whatever_is_cut_where(
    tmp_path: Path, generator: str, output: str, points: int, last: Point | None
) -> None:
    content, live = (DATA / output).read_bytes(), GENERATORS[generator]
    whole = live.read(content.decode())
    growing = tmp_path / "output"
    follower = Follower(growing, live.read)
    assert list(follower.look()) == []
    for end in range(0, len(content), 97):
        growing.write_bytes(content[:end])
        follower.look()
    growing.write_bytes(content)
    assert list(follower.look()) == list(whole)
    assert len(whole) == points
    assert all(point.throughput_per_s is None or point.throughput_per_s >= 0 for point in whole)
    if last is not None:
        assert whole[-1] == last


def test_many_windows_become_few_and_missing_ones_stay_missing() -> None:
    points = [Point(float(at), 2.0 * at, None) for at in range(1, 1801)]
    few = thinned(points)
    assert len(few) <= 240
    assert few[0] == Point(4.5, 9.0, None)
    assert few[-1].second == 1796.5
    assert thinned([]) == []


def test_what_the_probe_journals_is_what_it_converts_to() -> None:
    journal = Journal(DATA / "live" / "journal.tare")
    rows = [row for payload in journal.frames() for row in newest_rows(payload)]
    tables = {name: pl.read_parquet(DATA / "live" / f"{name}.parquet") for name in ("tick", "cgroup")}
    seen = [row for row in rows if row.table in tables]
    assert {row.table for row in seen} == set(tables)
    for row in seen:
        result = tables[row.table].filter((pl.col("tick") == row.tick) & (pl.col("target") == row.target))
        assert result.select(COLUMNS[row.table]).row(0) == row.cells
    assert journal.cgroups == {"client": "/sys/fs/cgroup/unified/"}


def test_columns_are_those_of_the_reference() -> None:
    rows: dict[str, list[str]] = {}
    for line in REFERENCE.read_text().partition("## Tables")[2].splitlines():
        if heading := re.match(r"### `(\w+)\.parquet`", line):
            rows[heading[1]] = []
        elif rows and (column := re.match(r"\| `(\w+)` \|", line)):
            rows[list(rows)[-1]].append(column[1])
    assert list(rows.items()) == [(table, list(columns)) for table, columns in COLUMNS.items()]


def test_a_journal_that_grows_is_read_on_and_a_torn_frame_waits(tmp_path: Path) -> None:
    content = (DATA / "live" / "journal.tare").read_bytes()
    whole = [len(payload) for payload in Journal(DATA / "live" / "journal.tare").frames()]
    growing, frames = Journal(tmp_path / "journal.tare"), list[int]()
    for end in (*range(12, len(content), 997), len(content)):
        growing.path.write_bytes(content[:end])
        frames += [len(payload) for payload in growing.frames()]
    assert frames == whole


@pytest.mark.parametrize("content", [b"", b"x" * 50, b"TAREPRB\n\x03\x00\x00\x00"])
def test_what_is_no_journal_of_this_version_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.tare").write_bytes(content)
    with pytest.raises(NotReadable):
        list(Journal(tmp_path / "journal.tare").frames())


def test_a_damaged_frame_ends_the_reading(tmp_path: Path) -> None:
    content = bytearray((DATA / "live" / "journal.tare").read_bytes())
    content[3000] ^= 0xFF
    (tmp_path / "journal.tare").write_bytes(content)
    with pytest.raises(NotReadable):
        list(Journal(tmp_path / "journal.tare").frames())


def _framed(row: Row, position: int) -> bytes:
    cells = [(1 << 64) - 1 if cell is None else cell for cell in row.cells]
    words = struct.pack(f"<{len(cells) + 2}Q", TABLES.index(row.table) << 32 | row.target, row.tick, *cells)
    checksum = zlib.crc32(struct.pack("<Q", position) + words)
    return struct.pack("<Q", (len(words) // 8 + 1) << 32 | checksum) + words


def _frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IBI", len(payload), kind, zlib.crc32(payload, zlib.crc32(bytes([kind])))) + payload


@pytest.mark.parametrize("upto", [0, 500])
def test_rows_that_wait_in_the_tail_are_shown_with_those_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upto: int
) -> None:
    ident, boot = "00112233-4455-6677-8899-aabbccddeeff", "ffeeddcc-bbaa-9988-7766-554433221100"
    raw, capacity = _raw(tmp_path), 1 << 16
    path = raw / "monitors" / "probe" / "trace" / "journal.tare"
    old = Journal(path)
    frames = list(old.frames())
    header = {**(old.header or {}), "tail": {"id": ident, "boot_id": boot, "path": "/etc/passwd"}}
    target = [{"id": number, "name": name, "kind": "host", "detail": ""} for number, name in old.targets.items()]
    results = [_frame(1, json.dumps(header).encode()), *(_frame(2, json.dumps(one).encode()) for one in target)]
    kept = [_frame(3, struct.pack("<Q", upto) + frame) for frame in frames[:5]]
    path.write_bytes(b"TAREPRB\n\x02\x00\x00\x00" + b"".join([*results, *kept]))
    without = TraceFollower(raw, every=1).look()

    ring, position = bytearray(8 * capacity), upto
    for row in (row for frame in frames[5:] for row in newest_rows(frame)):
        framed = _framed(row, position)
        ring[8 * position : 8 * position + len(framed)] = framed
        position += len(framed) // 8
    halves = [int(half, 16) for text in (ident, boot) for half in re.findall("." * 16, text.replace("-", ""))]
    head = struct.pack("<8s17Q", b"TARETAIL", 1, *halves, capacity, *[0] * 9, position, 0).ljust(4096, b"\0")
    monkeypatch.setattr("tare.live.journal.DIRECTORY", tmp_path)
    (tmp_path / f"tare-probe-{ident}.tail").write_bytes(head + ring)
    follower = TraceFollower(raw, every=1)
    shown = follower.look()
    assert len({point.second for point in shown}) > len({point.second for point in without})
    assert max(point.second for point in shown) > max(point.second for point in without)
    assert follower.look() == shown, "they are not kept, as they will come in the journal"

    # Half a row, a round of the ring later, another journal's: what is not whole is not shown.
    ring[8 * upto + 20] ^= 1
    (tmp_path / f"tare-probe-{ident}.tail").write_bytes(head + ring)
    assert TraceFollower(raw, every=1).look() == without
    (tmp_path / f"tare-probe-{ident}.tail").write_bytes(head.replace(b"TARETAIL", b"TARETALE") + ring)
    assert TraceFollower(raw, every=1).look() == without
    (tmp_path / f"tare-probe-{ident}.tail").unlink()
    assert TraceFollower(raw, every=1).look() == without


def _raw(folder: Path, token: str = TOKEN, later_s: float = 0.0) -> Path:
    """With a journal, which says that it began `later_s` later than it did."""
    raw = folder / token / "raw"
    trace = raw / "monitors" / "probe" / "trace"
    trace.mkdir(parents=True)
    content = (DATA / "live" / "journal.tare").read_bytes()
    end = 12 + 9 + struct.unpack_from("<I", content, 12)[0]
    header = json.loads(content[21:end])
    header["started_monotonic_ns"] += round(later_s * 1e9)
    (trace / "journal.tare").write_bytes(content[:12] + _frame(1, json.dumps(header).encode()) + content[end:])
    return raw


def test_resources_are_told_as_in_the_report(tmp_path: Path) -> None:
    points = TraceFollower(_raw(tmp_path), every=1).look()
    assert {(point.panel, point.who) for point in points} >= {("CPU, cores", "host"), ("CPU, cores", "client")}
    cores = [point.value for point in points if (point.panel, point.who) == ("CPU, cores", "host")]
    assert cores
    assert all(0 <= value <= 2.1 for value in cores)


def _now(folder: Path, phase: Phase = Phase.MEASURE, token: str = TOKEN) -> Now:
    run = Current(run_id="b01-0-a", arm="a", block=1, attempt=1, token=token, began_at=0.0, workload="sysbench",
                  phase=phase, phase_began_at=0.0)  # fmt: skip
    return Now(pid=1, began_at=0.0, work=str(folder), runs=(run,))


def test_a_run_under_way_shows_figures_resources_and_the_ends_of_its_output(tmp_path: Path) -> None:
    raw = _raw(tmp_path)
    (raw / "measure.stdout").write_bytes((DATA / "sysbench" / "closed.stdout").read_bytes())
    (raw / "sut.stderr").write_text("ready\n")
    (seen,) = RunFollower().look(_now(tmp_path))
    assert len(seen.windows) == 4
    assert {tail.name for tail in seen.tails} == {"measure.stdout", "sut.stderr"}
    assert seen.trace
    assert (seen.unit, seen.latency) == ("transactions", "95th percentile")
    looker = RunFollower()
    tuple(looker.look(_now(tmp_path)))
    (raw / "monitors" / "probe" / "trace" / "journal.tare").unlink()
    (later,) = looker.look(_now(tmp_path, Phase.COLLECT))
    assert list(later.windows) == list(seen.windows)
    assert list(later.trace) == list(seen.trace), "what it used is kept when its journal becomes another file"


def _header(raw: Path) -> Mapping[str, Any]:
    """What tells where second 0 is, by both clocks."""
    journal = Journal(raw / "monitors" / "probe" / "trace" / "journal.tare")
    tuple(journal.frames())
    assert journal.header is not None
    return journal.header


def _wrote(path: Path, content: bytes, at: float) -> None:
    """What a generator had printed by that moment, seconds since the epoch."""
    path.write_bytes(content)
    os.utime(path, (at, at))


@pytest.mark.parametrize(
    ("generator", "output", "ends"),
    [
        ("sysbench", "sysbench/closed.stdout", [1.0, 2.0, 3.0, 4.0]),
        ("ycsb", "ycsb/both.stderr", [0.0, 1.0, 2.0, 3.0, 3.0]),
        ("cassandra-stress", "cassandra-stress/mixed.stdout", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ],
)
def test_windows_are_drawn_where_they_were_on_the_clock_of_the_trace(
    tmp_path: Path, generator: str, output: str, ends: list[float]
) -> None:
    """It began to drive 7 s after the trace, and printed the last line half a second after its end."""
    raw, content = _raw(tmp_path), (DATA / output).read_bytes()
    header = _header(raw)
    began_at = header["started_realtime_ns"] / 1e9 + 7.0
    live = GENERATORS[generator]
    path = raw / f"measure.{live.stream}"
    lines = content.splitlines(keepends=True)
    now = _now(tmp_path)
    now = now.model_copy(update={"runs": tuple(run.model_copy(update={"workload": generator}) for run in now.runs)})
    looker, windows = RunFollower(), -1
    for count in range(1, len(lines) + 1):
        printed = live.read(b"".join(lines[:count]).decode())
        if len(printed) == windows and count < len(lines):
            continue  # nothing new to place
        windows, end_s = len(printed), printed[-1].second if printed else 0.0
        _wrote(path, b"".join(lines[:count]), began_at + end_s + (0.5 if count == len(lines) else 0.01))
        (seen,) = looker.look(now)
    middles = [7.01 + (since + until) / 2 for since, until in zip([0.0, *ends], ends, strict=False)]
    assert [point.second for point in seen.windows] == pytest.approx(middles, abs=0.06)
    assert seen.zero_s == header["started_monotonic_ns"] / 1e9
    assert min(point.second for point in seen.trace) < 1.0


def test_what_happened_at_one_moment_of_a_duet_stands_at_one_place(tmp_path: Path) -> None:
    """The second arm is watched from 5 s later on; both drive at once."""
    other = "ba9876543210"
    raws = [_raw(tmp_path), _raw(tmp_path, other, later_s=5.0)]
    began_at = _header(raws[0])["started_realtime_ns"] / 1e9 + 8.0
    content = (DATA / "sysbench" / "closed.stdout").read_bytes()
    for raw in raws:
        _wrote(raw / "measure.stdout", content, began_at + 4.0)
    now = _now(tmp_path)
    runs = (*now.runs, *_now(tmp_path, token=other).runs)
    one, two = RunFollower().look(now.model_copy(update={"runs": runs}))
    assert [point.second for point in one.windows] == [point.second for point in two.windows]
    assert [round(point.second, 2) for point in one.windows] == [8.5, 9.5, 10.5, 11.5]
    assert two.zero_s == one.zero_s
    assert [round(point.second, 1) for point in one.trace] == [round(point.second, 1) for point in two.trace]


def test_without_a_trace_windows_are_in_seconds_since_the_run_began(tmp_path: Path) -> None:
    raw = tmp_path / TOKEN / "raw"
    raw.mkdir(parents=True)
    _wrote(raw / "measure.stdout", (DATA / "sysbench" / "closed.stdout").read_bytes(), 1012.0)
    now = _now(tmp_path)
    now = now.model_copy(update={"runs": tuple(run.model_copy(update={"began_at": 1000.0}) for run in now.runs)})
    (seen,) = RunFollower().look(now)
    assert [point.second for point in seen.windows] == pytest.approx([8.5, 9.5, 10.5, 11.5])
    assert seen.zero_s is None


def test_output_of_a_container_is_read_where_its_engine_keeps_it(tmp_path: Path) -> None:
    raw, root = _raw(tmp_path), tmp_path / "docker"
    kept = root / "containers" / CONTAINER
    kept.mkdir(parents=True)
    lines = (DATA / "sysbench" / "closed.stdout").read_text().splitlines(keepends=True)
    entries = [json.dumps({"log": line, "stream": "stdout", "time": "2026-11-21T12:00:00Z"}) for line in lines]
    (kept / f"{CONTAINER}-json.log").write_text("\n".join(["{not json", *entries]) + "\n")
    looker = RunFollower(str(root))
    looker.look(_now(tmp_path))
    journal = Journal(raw / "monitors" / "probe" / "trace" / "journal.tare")
    assert list(journal.frames())
    source = looker._source(raw, "measure", "client", "stdout", {"client": f"/tare/x/{CONTAINER}"})
    assert source is not None
    assert len(Follower(source.path, GENERATORS["sysbench"].read, source.decode).look()) == 4
    assert decode_engine_log("stderr", b'{"log": "x", "stream": "stdout"}\n[]\n') == ""


@pytest.mark.parametrize("token", ["../../etc", "", "0123456789AB", "0123456789ab/.."])
def test_a_token_that_is_none_leads_nowhere(tmp_path: Path, token: str) -> None:
    assert list(RunFollower().look(_now(tmp_path, token=token))) == []


def test_links_and_devices_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.stdout").symlink_to("/etc/passwd")
    sources = [Source("a", tmp_path / "a.stdout", decode_text), Source("b", Path("/dev/zero"), decode_text)]
    assert list(tails(sources)) == []


def test_passwords_and_control_characters_are_not_shown() -> None:
    password = "0a" * 24
    shown = lines_of(
        f"using {password} now\n\x1b[31mred\u202e\nsha {'0a' * 32}\nhalf a line {password[:20]}".encode()
    )
    assert shown == ("using [password] now", "\ufffd[31mred\ufffd", f"sha {'0a' * 32}")


def test_of_a_long_output_its_last_lines_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.stdout").write_text("".join(f"{number} {'x' * 500}\n" for number in range(10_000)))
    (tail,) = tails([Source("a", tmp_path / "a.stdout", decode_text)])
    assert tail.lines[-1].startswith("9999 ")
    assert all(len(line) <= 301 for line in tail.lines)


def test_a_line_that_cannot_be_read_costs_its_own_figures_only(tmp_path: Path) -> None:
    """Found by attack: 5000 digits in a client's output ended every look at the run."""
    (tmp_path / "out").write_text(f"2024-01-01 00:00:00:000 {'9' * 5000} sec: 1 operations; x\n")
    follower = Follower(tmp_path / "out", GENERATORS["ycsb"].read)
    assert follower.look() == []
    with (tmp_path / "out").open("a") as out:
        out.write("2024-01-01 00:00:00:000 1 sec: 7 operations; 7 current ops/sec; [READ: Count=7]\n")
    assert [point.throughput_per_s for point in follower.look()] == [7.0]


@pytest.mark.parametrize("at", [0, 1, 5, 9])
def test_lines_beside_one_that_cannot_be_read_are_kept(tmp_path: Path, at: int) -> None:
    lines = [
        f"2024-01-01 00:00:00:000 {n} sec: {n} operations; {n} current ops/sec; [READ: Count={n}]"
        for n in range(1, 10)
    ]
    lines.insert(at, f"2024-01-01 00:00:00:000 {'9' * 5000} sec: 1 operations; x")
    (tmp_path / "out").write_text("\n".join([*lines, ""]))
    follower = Follower(tmp_path / "out", GENERATORS["ycsb"].read)
    assert [point.throughput_per_s for point in follower.look()] == [float(n) for n in range(1, 10)]
