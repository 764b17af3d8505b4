"""Cgroup layouts: v1 and v2 as systemd mounts them, hybrid captured from a real machine.

Only the hybrid layout could be exercised on a real kernel here; for the other two these tests are all there is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.deployments import Limits
from tare.deployments.cgroup.hierarchy import (
    CgroupKind,
    Write,
    leaf_writes,
    parent_writes,
    parse_cgroups,
    parse_proc_cgroup,
)
from tare.errors import EnvironmentLacks

DATA = Path(__file__).parents[3] / "data"
HYBRID = (DATA / "mountinfo-cgroup-hybrid.txt").read_text()
V1 = """\
25 18 0:22 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
26 25 0:23 / /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,release_agent=/lib/x,name=systemd
29 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:12 - cgroup cgroup rw,cpu,cpuacct
30 25 0:27 / /sys/fs/cgroup/cpuset rw,nosuid,nodev,noexec,relatime shared:13 - cgroup cgroup rw,cpuset
31 25 0:28 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:14 - cgroup cgroup rw,memory
32 25 0:29 / /sys/fs/cgroup/pids rw,nosuid,nodev,noexec,relatime shared:15 - cgroup cgroup rw,pids
60 25 0:27 /docker/abc /mnt/container/cpuset rw shared:13 - cgroup cgroup rw,cpuset
61 25 0:28 / /mnt/again rw shared:14 - cgroup cgroup rw,memory
"""
V2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
ALL = Limits(cpus="0-1", cpu_quota=1.5, memory_bytes=1 << 30)


class Files:
    """Reads from a dict, and lets writes be applied to it."""

    def __init__(self, **files: str) -> None:
        self.files = {path.replace("__", "/"): content for path, content in files.items()}

    def read(self, path: str) -> bytes | None:
        content = self.files.get(path)
        return None if content is None else content.encode()


def test_kinds_are_told_apart() -> None:
    assert [parse_cgroups(text).kind for text in (V1, HYBRID, V2)] == [
        CgroupKind.V1,
        CgroupKind.HYBRID,
        CgroupKind.V2,
    ]


def test_a_hierarchy_mounted_twice_or_in_part_counts_once() -> None:
    mounts = [hierarchy.mount for hierarchy in parse_cgroups(V1).hierarchies]
    assert mounts == [
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/cpu,cpuacct",
        "/sys/fs/cgroup/cpuset",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/pids",
    ]


def test_controllers_are_found_where_they_are_mounted() -> None:
    assert parse_cgroups(V1).mount_of("cpuacct") == "/sys/fs/cgroup/cpu,cpuacct"
    assert parse_cgroups(HYBRID).mount_of("cpu") == "/sys/fs/cgroup/cpu"
    assert parse_cgroups(V2).mount_of("memory") == "/sys/fs/cgroup"
    assert parse_cgroups(V1).mount_of("hugetlb") is None


def test_a_task_is_put_into_every_hierarchy_the_unified_one_of_a_hybrid_included() -> None:
    directories = parse_cgroups(HYBRID).directories("tare/r/t")
    assert "/sys/fs/cgroup/unified/tare/r/t" in directories
    assert "/sys/fs/cgroup/blkio/tare/r/t" in directories
    assert len(directories) == 10


def test_a_host_without_cgroups_is_refused() -> None:
    with pytest.raises(EnvironmentLacks, match="no cgroup hierarchy"):
        parse_cgroups("22 27 0:21 / /proc rw - proc proc rw\n")


def test_v1_parents_get_the_cpus_and_nodes_of_theirs_from_the_root_down() -> None:
    root = "/sys/fs/cgroup/cpuset"
    files = Files(**{f"{root}/cpuset.cpus": "0-3\n", f"{root}/cpuset.mems": "0\n"})
    written = []
    for write in parent_writes(parse_cgroups(V1), "tare/r", files.read):
        files.files[write.path] = write.value
        written.append(write)
    assert written == [
        Write(f"{root}/tare/cpuset.cpus", "0-3"),
        Write(f"{root}/tare/cpuset.mems", "0"),
        Write(f"{root}/tare/r/cpuset.cpus", "0-3"),
        Write(f"{root}/tare/r/cpuset.mems", "0"),
    ]


def test_v1_parents_that_are_filled_are_left_alone() -> None:
    root = "/sys/fs/cgroup/cpuset"
    filled = {f"{root}{path}/{name}": "0\n" for path in ("", "/tare") for name in ("cpuset.cpus", "cpuset.mems")}
    assert list(parent_writes(parse_cgroups(V1), "tare", Files(**filled).read)) == []


def test_v1_limits() -> None:
    root = "/sys/fs/cgroup"
    files = Files(
        **{
            f"{root}/cpuset/tare/cpuset.cpus": "0-3",
            f"{root}/cpuset/tare/cpuset.mems": "0",
            f"{root}/memory/tare/t/memory.memsw.limit_in_bytes": "9223372036854771712",
        }
    )
    assert list(leaf_writes(parse_cgroups(V1), "tare/t", ALL, files.read)) == [
        Write(f"{root}/cpuset/tare/t/cpuset.cpus", "0-3"),
        Write(f"{root}/cpuset/tare/t/cpuset.mems", "0"),
        Write(f"{root}/cpuset/tare/t/cpuset.cpus", "0-1"),
        Write(f"{root}/cpu,cpuacct/tare/t/cpu.cfs_period_us", "100000"),
        Write(f"{root}/cpu,cpuacct/tare/t/cpu.cfs_quota_us", "150000"),
        Write(f"{root}/memory/tare/t/memory.limit_in_bytes", "1073741824"),
        Write(f"{root}/memory/tare/t/memory.memsw.limit_in_bytes", "1073741824"),
    ]


MORE = Limits(memory_bytes=1 << 30, swap_bytes=1 << 20, mems="0", pids=500)


def test_v1_limits_of_swap_nodes_and_processes() -> None:
    text = V1 + "34 25 0:31 / /sys/fs/cgroup/pids rw shared:14 - cgroup cgroup rw,pids\n"
    root = "/sys/fs/cgroup"
    files = Files(**{f"{root}/cpuset/t/{name}": "0" for name in ("cpuset.cpus", "cpuset.mems")})
    assert list(leaf_writes(parse_cgroups(text), "t", MORE, files.read)) == [
        Write(f"{root}/cpuset/t/cpuset.mems", "0"),
        Write(f"{root}/memory/t/memory.limit_in_bytes", "1073741824"),
        Write(f"{root}/memory/t/memory.memsw.limit_in_bytes", "1074790400"),
        Write(f"{root}/pids/t/pids.max", "500"),
    ]


def test_v2_limits_of_swap_nodes_and_processes() -> None:
    assert list(leaf_writes(parse_cgroups(V2), "t", MORE, Files().read)) == [
        Write("/sys/fs/cgroup/t/memory.max", "1073741824"),
        Write("/sys/fs/cgroup/t/memory.swap.max", "1048576"),
        Write("/sys/fs/cgroup/t/cpuset.mems", "0"),
        Write("/sys/fs/cgroup/t/pids.max", "500"),
    ]


def test_v1_swap_is_not_limited_where_it_is_not_accounted() -> None:
    limits = Limits(memory_bytes=1 << 20)
    paths = [write.path for write in leaf_writes(parse_cgroups(V1), "t", limits, Files().read)]
    assert not [path for path in paths if "memsw" in path]


def test_v2_controllers_are_handed_down_from_the_root() -> None:
    root = "/sys/fs/cgroup"
    files = Files(**{f"{root}/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n"})
    written = []
    for write in parent_writes(parse_cgroups(V2), "tare/r", files.read):
        parent = write.path.removesuffix("/cgroup.subtree_control")
        for child in (f"{root}/tare", f"{root}/tare/r"):
            if str(Path(child).parent) == parent:
                files.files[f"{child}/cgroup.controllers"] = write.value.replace("+", "")
        written.append(write)
    assert written == [
        Write(f"{place}/cgroup.subtree_control", "+cpu +cpuset +io +memory +pids")
        for place in (root, f"{root}/tare", f"{root}/tare/r")
    ]


def test_v2_limits_forbid_swap_as_v1_does() -> None:
    assert list(leaf_writes(parse_cgroups(V2), "tare/t", ALL, Files().read)) == [
        Write("/sys/fs/cgroup/tare/t/cpuset.cpus", "0-1"),
        Write("/sys/fs/cgroup/tare/t/cpu.max", "150000 100000"),
        Write("/sys/fs/cgroup/tare/t/memory.max", "1073741824"),
        Write("/sys/fs/cgroup/tare/t/memory.swap.max", "0"),
    ]


PARTITIONS = {
    "/proc/partitions": "major minor  #blocks  name\n\n 254 0 9 vda\n 254 1 8 vda1\n 7 0 6 loop0\n 8 16 9 sdb\n",
    **{f"/sys/block/{name}/dev": "" for name in ("vda", "loop0", "sdb")},
}


def test_operations_are_limited_on_every_whole_disk() -> None:
    text = V1 + "33 25 0:30 / /sys/fs/cgroup/blkio rw shared:13 - cgroup cgroup rw,blkio\n"
    limits, root = Limits(disk_iops=500), "/sys/fs/cgroup/blkio/tare/t"
    assert list(leaf_writes(parse_cgroups(text), "tare/t", limits, Files(**PARTITIONS).read))[-4:] == [
        Write(f"{root}/blkio.throttle.read_iops_device", "254:0 500"),
        Write(f"{root}/blkio.throttle.write_iops_device", "254:0 500"),
        Write(f"{root}/blkio.throttle.read_iops_device", "8:16 500"),
        Write(f"{root}/blkio.throttle.write_iops_device", "8:16 500"),
    ]
    assert list(leaf_writes(parse_cgroups(V2), "tare/t", limits, Files(**PARTITIONS).read)) == [
        Write("/sys/fs/cgroup/tare/t/io.max", "254:0 riops=500 wiops=500"),
        Write("/sys/fs/cgroup/tare/t/io.max", "8:16 riops=500 wiops=500"),
    ]


def test_a_host_without_a_disk_cannot_limit_one() -> None:
    with pytest.raises(EnvironmentLacks, match="no disk of this host can be limited"):
        list(leaf_writes(parse_cgroups(V2), "t", Limits(disk_iops=500), Files().read))


@pytest.mark.parametrize("text", [V1, V2])
def test_the_weight_is_never_written(text: str) -> None:
    paths = [write.path for write in leaf_writes(parse_cgroups(text), "t", ALL, Files().read)]
    assert not [path for path in paths if path.endswith(("cpu.shares", "cpu.weight"))]


def test_a_limit_that_the_kernel_has_no_controller_for_is_refused() -> None:
    without_cpu = "\n".join(line for line in V1.splitlines() if "cpuacct" not in line)
    with pytest.raises(EnvironmentLacks, match="offers no cpu cgroup controller"):
        list(leaf_writes(parse_cgroups(without_cpu), "t", Limits(cpu_quota=1.0), Files().read))


def test_procs_files_follow_proc_cgroup_whatever_the_order_of_controllers() -> None:
    text = "12:cpuacct,cpu:/a/b\n11:memory:/m\n1:name=systemd:/s:with:colons\n0::/u\n"
    assert parse_cgroups(V1).procs_files(text) == (
        "/sys/fs/cgroup/systemd/s:with:colons/cgroup.procs",
        "/sys/fs/cgroup/cpu,cpuacct/a/b/cgroup.procs",
        "/sys/fs/cgroup/memory/m/cgroup.procs",
    )
    assert parse_cgroups(V2).procs_files("0::/tare.slice/x.scope\n") == (
        "/sys/fs/cgroup/tare.slice/x.scope/cgroup.procs",
    )
    assert parse_proc_cgroup(text)[""] == "/u"


def test_bytes_that_are_no_text_are_passed_on_as_far_as_they_can_be_read() -> None:
    controllers = {"/sys/fs/cgroup/cgroup.controllers": b"cpu \xff memory\n"}
    first = next(iter(parent_writes(parse_cgroups(V2), "tare", controllers.get)))
    assert first == Write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory")
    cpus = {"/sys/fs/cgroup/cpuset/cpuset.cpus": b"0\xff\n"}
    inherited = next(iter(parent_writes(parse_cgroups(V1), "tare", cpus.get)))
    assert inherited == Write("/sys/fs/cgroup/cpuset/tare/cpuset.cpus", "0\ufffd")
