"""Each tool's own output, as it left it in a real run (tests/data/monitors/README.md), read as samples."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tare.errors import RunFailed
from tare.monitors import Monitor, MonitorContext, Reading, WatchedProcess, why_unavailable
from tare.monitors.docker_stats import used_memory
from tare.monitors.registry import MONITORS
from tare.monitors.samples import columns, moments, stamped
from tare.sites.fake import FakeHost

DATA = Path(__file__).resolve().parents[2] / "data" / "monitors"
SECOND = 1_000_000_000
TOOLS = ("mpstat", "iostat", "sar", "pidstat", "docker-stats")
WATCHED = (WatchedProcess("sut", 2879, own_cgroup=True, container_id="c0ffee"), WatchedProcess("dockerd", 5788))


def scene(interval_s: float = 1.0, watched: tuple[WatchedProcess, ...] = WATCHED) -> MonitorContext:
    return MonitorContext(FakeHost(), "/run/m", interval_s=interval_s, most_s=100.0, watched=watched)


def read(name: str, directory: Path = DATA) -> Reading:
    return MONITORS[name].read(scene(), directory)


def samples(name: str) -> pl.DataFrame:
    table = read(name).table
    assert table is not None
    return table


def first(name: str, quantity: str, subject: str) -> float:
    of_it = (pl.col("quantity") == quantity) & (pl.col("subject") == subject)
    return float(samples(name).filter(of_it).sort("to_ns")["value"][0])


@pytest.mark.parametrize("name", TOOLS)
def test_every_sample_has_its_place_in_time(name: str) -> None:
    table = samples(name)
    assert dict(table.schema) == columns()
    assert set(table["tool"]) == {name}
    assert table["value"].null_count() == 0
    ends = table["to_ns"].unique().sort()
    assert len(ends) <= read(name).samples
    assert all(0.8 * SECOND < gap < 1.2 * SECOND for gap in ends.diff().drop_nulls())
    assert (table["from_ns"] <= table["to_ns"]).all()
    assert (table["within_ns"] < SECOND).all()


@pytest.mark.parametrize(
    ("name", "quantity", "subject", "value"),
    [
        ("mpstat", "usr", "all", 43.41),
        ("mpstat", "idle", "1", 0.0),
        ("iostat", "written_kib", "vda", 1220.00),
        ("iostat", "util", "vda", 4.00),
        ("sar", "user", "all", 59.11),
        ("sar", "memory_used_kib", "host", 1944264.0),
        ("sar", "disk_wkb", "vda", 39378.22),
        ("pidstat", "cpu_percent", "client pid 4191", 2.94),
        ("pidstat", "resident_kib", "sut pid 2879", 103080.0),
    ],
)
def test_a_value_is_the_one_that_the_tool_printed(name: str, quantity: str, subject: str, value: float) -> None:
    assert first(name, quantity, subject) == value


@pytest.mark.parametrize("command", ["", "\xe4", "a\x0cb", "\x85", "a  b"])
def test_other_programs_may_call_themselves_anything(tmp_path: Path, command: str) -> None:
    lines = (DATA / "pidstat.stdout").read_bytes().splitlines(keepends=True)
    other = next(number for number, line in enumerate(lines) if b"\t#" in line) + 1
    cells = lines[other].split()
    foreign = b"%s\t%s" % (cells[0], b" ".join([cells[1], b"0", b"99999", *cells[4:-1]]))
    lines.insert(other, foreign + b" " + command.encode("latin-1") + b"\n")
    (tmp_path / "pidstat.stdout").write_bytes(b"".join(lines))
    shutil.copy(DATA / "later", tmp_path)
    table = read("pidstat", tmp_path).table
    assert table is not None
    assert table.equals(samples("pidstat"))


def test_the_client_shows_a_frame_as_docker_stats_does() -> None:
    one = json.loads((DATA / "docker-stats.stdout").read_text().splitlines()[1])["frame"]
    now, before = one["cpu_stats"], one["precpu_stats"]
    used = now["cpu_usage"]["total_usage"] - before["cpu_usage"]["total_usage"]
    share = used / (now["system_cpu_usage"] - before["system_cpu_usage"]) * 2 * 100
    assert first("docker-stats", "cpu_percent", "sut") == pytest.approx(share)
    memory = one["memory_stats"]["usage"] - one["memory_stats"]["stats"]["total_inactive_file"]
    assert first("docker-stats", "memory_bytes", "sut") == memory
    assert first("docker-stats", "network_tx_bytes", "sut") == one["networks"]["eth0"]["tx_bytes"]


def test_the_first_frame_has_no_sample_before_it_and_is_dropped() -> None:
    frames = (DATA / "docker-stats.stdout").read_text().splitlines()
    reading = read("docker-stats")
    assert (reading.samples, reading.values) == (len(frames) - 1, {"dropped_frames": 1})


@pytest.mark.parametrize(
    ("memory", "cpu_ns", "values"),
    [
        ({}, None, {"cpu_percent", "block_read_bytes", "block_written_bytes"}),
        ({"usage": 4096}, None, {"cpu_percent", "memory_bytes", "block_read_bytes", "block_written_bytes"}),
        ({}, 0, set()),
    ],
    ids=["no memory controller", "no limit", "ended"],
)
def test_what_a_frame_does_not_say_is_no_figure(
    memory: dict[str, int], cpu_ns: int | None, values: set[str], tmp_path: Path
) -> None:
    frame = json.loads((DATA / "docker-stats.stdout").read_text().splitlines()[-1])
    frame["frame"] |= {"memory_stats": memory, "networks": None}
    if cpu_ns is not None:
        frame["frame"]["cpu_stats"]["cpu_usage"]["total_usage"] = cpu_ns
    (tmp_path / "docker-stats.stdout").write_text(json.dumps(frame))
    table = read("docker-stats", tmp_path).table
    assert table is not None
    assert set(table["quantity"]) == values


def test_gauges_are_of_a_moment_and_rates_of_an_interval() -> None:
    table = samples("sar")
    instant = pl.col("to_ns") == pl.col("from_ns")
    assert table.filter(quantity="memory_used_kib").select(instant).to_series().all()
    assert not table.filter(quantity="user").select(instant).to_series().any()


def test_page_cache_is_taken_off_on_either_version_of_control_groups() -> None:
    assert used_memory({"usage": 100, "stats": {"total_inactive_file": 30, "inactive_file": 5}}) == 70
    assert used_memory({"usage": 100, "stats": {"inactive_file": 30}}) == 70
    assert used_memory({"usage": 20, "stats": {"inactive_file": 30}}) == 20


@pytest.mark.parametrize(
    ("version", "quantity"),
    [("12.7.7", "memory_used_kib"), ("12.7.8", "memory_used_kib_12_7_8"), ("13.0.1", "memory_used_kib_12_7_8")],
)
def test_used_memory_of_sar_means_what_its_version_means(version: str, quantity: str, tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sar.version").write_text(f"S_COLORS=never\nsysstat version {version}\n(C) Sebastien Godard\n")
    values = read("sar", tmp_path).table
    assert values is not None
    assert set(values.filter(subject="host")["quantity"]) == {quantity}


def test_a_sar_that_tells_no_version_is_refused(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sar.version").write_text("sar: what?\n")
    with pytest.raises(RunFailed, match="prints no version"):
        read("sar", tmp_path)


def test_disk_io_that_pidstat_may_not_read_is_none(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "pidstat.stdout"
    lines = file.read_text().splitlines()
    heading = next(line.partition("\t#")[2] for line in lines if "\t#" in line)
    at = heading.split().index("kB_rd/s")
    file.write_text("".join(f"{refused(line, at)}\n" for line in lines))
    whole, values = read("pidstat").table, read("pidstat", tmp_path).table
    assert whole is not None
    assert values is not None
    io = ["read_kib", "written_kib", "cancelled_kib"]
    assert not whole.filter(pl.col("quantity").is_in(io)).is_empty()
    assert values.equals(whole.filter(~pl.col("quantity").is_in(io)))


def refused(line: str, at: int) -> str:
    """A line of pidstat's with -1.00 for its three columns of disk I/O, of which the first is `at`."""
    stamp, _, rest = line.partition("\t")
    words = rest.split()
    if not rest[:1].isdecimal():
        return line
    words[at : at + 3] = ["-1.00"] * 3
    return f"{stamp}\t{' '.join(words)}"


@pytest.mark.parametrize("name", TOOLS)
def test_output_that_was_cut_short_is_no_output(name: str, tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    for file in (*tmp_path.glob("*.stdout"), tmp_path / "sar.json"):
        file.write_text(file.read_text()[:-40].rstrip("}\n "))
    if name == "pidstat":  # whole lines of a table tell nothing of those that are missing
        (tmp_path / "pidstat.stdout").write_text("1\tLinux\n")
    with pytest.raises(RunFailed):
        read(name, tmp_path)


@pytest.mark.parametrize("cut", [14, 60, 110])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_of_pidstat_s_that_was_cut_short_is_told(cut: int, end: str, tmp_path: Path) -> None:
    """Bytes off the end of the last line of a program that was watched."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "pidstat.stdout"
    whole = file.read_text().rpartition("mariadbd\n")[0]
    file.write_text(whole.rstrip()[:-cut] + end)
    with pytest.raises(RunFailed, match="the output of pidstat is cut short"):
        read("pidstat", tmp_path)


@pytest.mark.parametrize("name", ["mpstat", "iostat", "sar", "pidstat"])
def test_sysstat_is_stamped_counted_by_its_children_and_ends_by_itself(name: str) -> None:
    monitor: Monitor = MONITORS[name]
    (program,) = monitor.programs(scene(interval_s=2.0))
    assert program.argv[4:6] == ("/run/m/ready", name)
    assert program.argv[-2:] == ("2", "51")
    assert (program.stop, program.counts_itself, program.started) == ("INT", False, "/run/m/ready")
    assert why_unavailable(monitor, FakeHost(), 1.0, {}) is None


@pytest.mark.parametrize(
    ("name", "interval_s"), [("mpstat", 0.5), ("sar", 1.5), ("docker-stats", 2.0), ("docker-stats", 0.5)]
)
def test_an_interval_that_a_tool_cannot_keep_is_told(name: str, interval_s: float) -> None:
    assert "interval_s" in (why_unavailable(MONITORS[name], FakeHost(), interval_s, {}) or "")


def test_a_tool_that_is_not_installed_is_told_with_its_package() -> None:
    host = FakeHost(answers={("mpstat", "-V"): RunFailed("mpstat cannot be run on fake")})
    assert why_unavailable(MONITORS["mpstat"], host, 1.0, {}) == "mpstat is not installed; apt-get install sysstat"


def test_docker_stats_watches_containers_only() -> None:
    bare = (WatchedProcess("sut", 7, own_cgroup=True),)
    assert MONITORS["docker-stats"].programs(scene(watched=bare)) == ()
    (program,) = MONITORS["docker-stats"].programs(scene())
    assert program.files["containers"] == "c0ffee\n"


def test_docker_stats_is_told_of_a_program_that_comes_later() -> None:
    alone = (WatchedProcess("dockerd", 1),)
    (program,) = MONITORS["docker-stats"].programs(scene(watched=alone))
    assert program.files["containers"] == ""
    handed = MONITORS["docker-stats"].update_targets(
        scene(watched=alone), (WatchedProcess("sut", 7, container_id="ab"),)
    )
    assert handed is not None
    assert (handed.file, handed.content, handed.signal) == ("containers", "ab\n", "HUP")
    assert (
        MONITORS["docker-stats"].update_targets(scene(), (WatchedProcess("client", 7, container_id="ab"),)) is None
    )


def test_delay_is_what_scatters_about_an_even_grid() -> None:
    results = moments([1_000_000_000, 2_030_000_000, 3_010_000_000], 1.0)
    assert [(one.from_ns, one.to_ns) for one in results][:2] == [(0, 1_000_000_000), (1_000_000_000, 2_030_000_000)]
    assert {one.within_ns for one in results} == {35_000_000}
    assert moments([], 1.0) == []


def test_a_line_without_its_stamp_was_cut_short() -> None:
    assert [line.text for line in stamped("12\ta\n13\t\n", "x")] == ["a", ""]
    with pytest.raises(RunFailed, match="cut short"):
        stamped("12\ta\n1\n", "x")
    with pytest.raises(RunFailed, match=r"cut short \(it ends with '13\\tb'"):
        stamped("12\ta\n13\tb", "x")
