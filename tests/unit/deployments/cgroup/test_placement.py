"""Placement by a fake host: what is made and removed, where, and in which order."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tare.deployments import Limits, Task
from tare.deployments.cgroup.hierarchy import parse_cgroups
from tare.deployments.cgroup.placement import (
    _MOVE,
    PlainCgroups,
    RuncCgroup,
    SystemdSlices,
    placement_of,
    scope_properties,
    set_cpu_weight,
    slice_name,
    slice_path,
)
from tare.deployments.defaults import cpu_shares
from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image, ImageConfig
from tare.sites import Completed, Output
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import CgroupPlace

DATA = Path(__file__).parents[3] / "data"
TASK = Task(
    name="tare-r-sut",
    image=Image("i", "sha256:0", "/i", None, ImageConfig()),
    argv=("true",),
    output=Output("/o", "/e"),
    cgroup_parent="tare/r",
    limits=Limits(cpus="0", cpu_quota=1.5, memory_bytes=1 << 30),
)


@dataclass
class FakeEngine:
    driver: str
    asked: int = field(default=0)

    def info(self) -> dict[str, Any]:
        self.asked += 1
        return {"CgroupDriver": self.driver}


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.files["/proc/self/mountinfo"] = (DATA / "mountinfo-cgroup-hybrid.txt").read_bytes()
    host.files["/proc/1/comm"] = b"init\n"
    for name, value in (("cpuset.cpus", b"0-1\n"), ("cpuset.mems", b"0\n")):
        host.files[f"/sys/fs/cgroup/cpuset/{name}"] = value
    return host


def test_the_engines_driver_decides_before_the_init_system(host: FakeHost, ledger: SqliteLedger) -> None:
    host.files["/proc/1/comm"] = b"systemd\n"
    assert isinstance(placement_of(host, ledger, None), SystemdSlices)
    plain, systemd = (cast("Any", FakeEngine(driver)) for driver in ("cgroupfs", "systemd"))
    assert isinstance(placement_of(host, ledger, plain), PlainCgroups)
    assert isinstance(placement_of(host, ledger, systemd), SystemdSlices)


def test_cgroups_are_noted_before_they_are_made(host: FakeHost, ledger: SqliteLedger) -> None:
    seen: list[list[str]] = []

    def mkdir(argv: Any, stdin: bytes) -> Any:
        seen.append([entry.ident for entry in ledger.entries()])
        raise RunFailed("stop here")

    host.answers[("mkdir",)] = mkdir
    with pytest.raises(RunFailed):
        placement_of(host, ledger, None).make(TASK)
    assert seen == [["tare/r"]]


def test_bare_tasks_join_every_hierarchy_with_their_limits(host: FakeHost, ledger: SqliteLedger) -> None:
    procs = placement_of(host, ledger, None).make(TASK)
    assert len(procs) == 10
    assert "/sys/fs/cgroup/unified/tare/r/tare-r-sut/cgroup.procs" in procs
    wrote = {asked.path: asked.content for asked in host.asked if asked.what == "put"}
    assert wrote["/sys/fs/cgroup/cpuset/tare/r/cpuset.mems"] == b"0"
    assert wrote["/sys/fs/cgroup/cpuset/tare/r/tare-r-sut/cpuset.cpus"] == b"0"
    assert wrote["/sys/fs/cgroup/cpu/tare/r/tare-r-sut/cpu.cfs_quota_us"] == b"150000"
    assert [entry.ident for entry in ledger.entries()] == ["tare/r/tare-r-sut", "tare/r"]


def test_a_limit_that_the_kernel_refuses_is_the_environments_lack(host: FakeHost, ledger: SqliteLedger) -> None:
    def refuse(source: Any, target: str, *, mode: int = 0o644) -> None:
        raise RunFailed(f"{target} cannot be written on fake: Permission denied")

    host.put = refuse  # type: ignore[method-assign]  # a method in place of a method
    with pytest.raises(EnvironmentLacks, match="limit '0-1' is refused"):
        placement_of(host, ledger, None).make(TASK)


def test_a_parent_in_use_stays_in_the_ledger(host: FakeHost, ledger: SqliteLedger) -> None:
    ledger.note(Kind.CGROUP, "tare/r", host="fake")
    host.files["/sys/fs/cgroup/cpu/tare/r/cgroup.procs"] = b""
    placement = placement_of(host, ledger, None)
    assert not placement.prune_parent("tare/r")
    assert len(ledger.entries()) == 1
    del host.files["/sys/fs/cgroup/cpu/tare/r/cgroup.procs"]
    assert placement.prune_parent("tare/r")
    assert ledger.entries() == ()


@pytest.mark.parametrize(
    ("parent", "name", "path"),
    [
        ("tare/r", "tare-r.slice", "tare.slice/tare-r.slice"),
        ("tare/a-b c", "tare-a_b_c.slice", "tare.slice/tare-a_b_c.slice"),
    ],
)
def test_slices_nest_by_their_dashes(parent: str, name: str, path: str) -> None:
    assert (slice_name(parent), slice_path(parent)) == (name, path)


def test_systemd_takes_bare_tasks_where_its_engine_puts_containers(host: FakeHost, ledger: SqliteLedger) -> None:
    placement = placement_of(host, ledger, cast("Any", FakeEngine("systemd")))
    assert placement.make(TASK) == ()
    assert placement.engine_parent("tare/r") == "tare-r.slice"
    assert placement.runc_cgroup(TASK) == RuncCgroup("tare-r.slice:tare:r-sut", by_systemd=True)
    words = placement.prefix(TASK)
    assert words[:2] == ("systemd-run", "--scope")
    assert "--slice=tare-r.slice" in words
    assert words[-1] == "--"
    idents = [entry.ident for entry in ledger.entries()]
    assert idents == ["tare.slice/tare-r.slice/tare-r-sut.scope", "tare.slice/tare-r.slice"]


def test_systemd_is_given_the_same_limits() -> None:
    host = FakeHost()
    host.files |= {
        "/proc/partitions": b"major minor  #blocks  name\n\n 8 0 9 sda\n",
        "/sys/block/sda/dev": b"8:0\n",
    }
    assert scope_properties(Limits(disk_iops=500), host.read)[1:] == (
        "IOReadIOPSMax=/dev/sda 500",
        "IOWriteIOPSMax=/dev/sda 500",
    )
    more = Limits(memory_bytes=1 << 20, swap_bytes=4096, mems="0-1", pids=9)
    assert scope_properties(more, host.read)[1:] == (
        "MemoryMax=1048576",
        "MemorySwapMax=4096",
        "AllowedMemoryNodes=0-1",
        "TasksMax=9",
    )
    assert scope_properties(TASK.limits, host.read) == (
        "Delegate=yes",
        "AllowedCPUs=0",
        "CPUQuota=150%",
        "CPUQuotaPeriodSec=100ms",
        "MemoryMax=1073741824",
        "MemorySwapMax=0",
    )


class ReadsTogether(FakeHost):
    """As a host over SSH; `alone`: what it was asked one at a time."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files=files)
        self.alone: list[str] = []

    def read(self, path: str) -> bytes | None:
        self.alone.append(path)
        return super().read(path)

    def read_all(self, paths: Sequence[str]) -> Mapping[str, bytes | None]:
        return {path: self.files.get(path) for path in paths}


def test_a_host_that_reads_many_files_at_once_gets_the_same_groups(host: FakeHost, ledger: SqliteLedger) -> None:
    far = ReadsTogether(dict(host.files))
    placements = placement_of(host, ledger, None), placement_of(far, ledger, None)
    far.alone.clear()
    joined = [placement.make(TASK) for placement in placements]
    assert joined[0] == joined[1]
    assert far.files == host.files
    assert far.files["/sys/fs/cgroup/cpuset/tare/r/tare-r-sut/cpuset.mems"] == b"0"
    # What was written meanwhile is read anew: each group's parent, where that was made by this very call.
    assert len(far.alone) <= 6


def test_a_container_is_weighed_and_one_that_has_ended_is_not(host: FakeHost, ledger: SqliteLedger) -> None:
    cgroups = PlainCgroups(host, ledger, parse_cgroups(host.files["/proc/self/mountinfo"].decode())).cgroups
    before = set(host.files)
    set_cpu_weight(host, cgroups, 41, Limits(cpu_weight=50))
    assert set(host.files) == before
    host.files["/proc/42/cgroup"] = b"4:cpu:/tare/r/container\n"
    set_cpu_weight(host, cgroups, 42, Limits(cpu_weight=50))
    assert host.files["/sys/fs/cgroup/cpu/tare/r/container/cpu.shares"] == str(cpu_shares(50)).encode()
    host.files["/proc/43/cgroup"] = b"4:cpu:/tare.slice/libpod-1.scope/container\n"
    set_cpu_weight(host, cgroups, 43, Limits(cpu_weight=50))
    assert "/sys/fs/cgroup/cpu/tare.slice/libpod-1.scope/cpu.shares" in host.files


def test_only_the_task_itself_enters_the_scope_that_systemd_makes(host: FakeHost, ledger: SqliteLedger) -> None:
    """The launcher and its supervisor ran in it, too: 6.5 MB of a bare task's memory limit were theirs."""
    placement = placement_of(host, ledger, cast("Any", FakeEngine("systemd")))
    before, shell = placement.mover(TASK)[:-4], placement.mover(TASK)[-4:]
    assert before == placement.prefix(TASK)
    assert (shell[0], shell[1], shell[3]) == ("sh", "-c", "sh")
    assert "/sys/fs/cgroup/cpu/tare.slice/tare-r.slice/tare-r-sut.scope/cgroup.procs" in shell[2]
    assert placement.mover(replace(TASK, cgroup=CgroupPlace.ROOT)) == ()


def test_the_shell_in_a_scope_moves_the_process_and_reports_what_the_kernel_refuses(tmp_path: Path) -> None:
    there, absent, refused = tmp_path / "cgroup.procs", tmp_path / "absent", tmp_path / "directory"
    there.touch()
    refused.mkdir()
    for files, code in (((there, absent), 0), ((there, refused), 2)):
        script = _MOVE.format(procs=" ".join(str(file) for file in files))
        done = subprocess.run(["sh", "-c", script, "sh", "4711"], capture_output=True, check=False)
        assert (done.returncode != 0) is (code != 0)
        assert there.read_text() == "4711\n"
        assert not absent.exists()


def test_an_empty_slice_is_stopped_with_those_above_it(host: FakeHost, ledger: SqliteLedger) -> None:
    """systemd makes the cgroup of an active slice again: `tare.slice` remained after `tare clean`."""
    placement = placement_of(host, ledger, cast("Any", FakeEngine("systemd")))
    assert placement.prune_parent("tare/r")
    stopped = [argv[-1] for argv in host.ran() if argv[:2] == ("systemctl", "stop")]
    assert stopped == ["tare-r.slice", "tare.slice"]


def test_a_slice_that_others_use_is_not_stopped(host: FakeHost, ledger: SqliteLedger) -> None:
    host.files["/sys/fs/cgroup/cpu/tare.slice/cgroup.procs"] = b""
    placement = placement_of(host, ledger, cast("Any", FakeEngine("systemd")))
    assert placement.prune_parent("tare/r")
    assert [argv[-1] for argv in host.ran() if argv[:2] == ("systemctl", "stop")] == ["tare-r.slice"]


@pytest.mark.parametrize(("code", "kept"), [(0, False), (5, False), (4, False), (1, True)])
def test_a_slice_that_systemd_does_not_stop_stays_in_the_ledger(
    code: int, host: FakeHost, ledger: SqliteLedger, *, kept: bool
) -> None:
    placement = placement_of(host, ledger, cast("Any", FakeEngine("systemd")))
    placement.make_parent("tare/r")
    host.answers[("systemctl", "stop")] = Completed((), code, b"", b"Failed to stop: timed out\n")
    refusal = pytest.raises(RunFailed, match=r"does not stop tare-r\.slice: Failed to stop: timed out")
    with refusal if kept else nullcontext():
        placement.prune_parent("tare/r")
    assert bool(ledger.entries()) is kept
