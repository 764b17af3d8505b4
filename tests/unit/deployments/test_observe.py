"""Readings of /proc and of cgroups, on text as kernel 6.18 prints it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import Limits
from tare.deployments.cgroup.hierarchy import cgroups_of, parse_cgroups
from tare.deployments.mounts import below, covering, parse_mountinfo
from tare.deployments.observe import (
    mounts_of,
    network_settings_of,
    observe,
    parse_environ,
    parse_limits,
    parse_status,
)
from tare.deployments.rlimits import Rlimit, ceilings, rlimits
from tare.errors import RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost

DATA = Path(__file__).parents[2] / "data"
HYBRID = (DATA / "mountinfo-cgroup-hybrid.txt").read_text()
V1 = "33 24 0:29 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n"
V2 = "35 24 0:30 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max open files            1000                 20000                files     
Max nice priority         0                    0                    
Max realtime timeout      unlimited            unlimited            us        
"""  # noqa: W291 - as the kernel prints it
STATUS = """\
Name:\tsleep
CapEff:\t000001fffeffffff
Seccomp:\t2
Speculation_Store_Bypass:\tvulnerable
SpeculationIndirectBranch:\talways enabled
Cpus_allowed_list:\t0-1
"""
MOUNTS = """\
87 43 0:46 / / ro,relatime - tmpfs tmpfs rw,size=1024k
119 87 254:0 /some\\040where/data /data rw,relatime - ext4 /dev/vda rw
120 119 0:50 / /data/inner rw shared:3 master:1 - tmpfs tmpfs rw
121 87 0:51 / /database rw - tmpfs tmpfs rw
"""


def test_limits_keep_soft_and_hard() -> None:
    assert parse_limits(LIMITS) == {
        "Max cpu time": "unlimited unlimited",
        "Max open files": "1000 20000",
        "Max nice priority": "0 0",
        "Max realtime timeout": "unlimited unlimited",
    }
    assert parse_limits("") == {}


def test_a_target_lies_on_the_closest_mount() -> None:
    assert mounts_of(MOUNTS, ["/data", "/data/inner/x", "/dat"]) == {
        "/data": "ext4 254:0",
        "/data/inner/x": "tmpfs 0:50",
        "/dat": "tmpfs 0:46",
    }


def test_escaped_blanks_in_mountinfo_are_read() -> None:
    mounts = parse_mountinfo(MOUNTS)
    assert mounts[1].root == "/some where/data"
    mount = covering(mounts, "/data")
    assert mount is not None
    assert mount.fstype == "ext4"


def test_what_is_below_a_path_comes_in_the_order_of_unmounting() -> None:
    assert below(parse_mountinfo(MOUNTS), "/data") == ("/data/inner", "/data")


def test_a_container_is_observed_by_what_the_kernel_says() -> None:
    host, own = FakeHost(), "tare/r/abc"
    process = host.spawn()
    host.files |= {
        f"/proc/{process.pid}/cgroup": f"4:memory:/{own}\n1:cpu:/{own}\n0::/{own}\n".encode(),
        f"/proc/{process.pid}/status": STATUS.encode(),
        f"/proc/{process.pid}/limits": LIMITS.encode(),
        f"/proc/{process.pid}/oom_score_adj": b"0\n",
        f"/proc/{process.pid}/environ": b"PATH=/bin\0FROM_IMAGE=yes\0",
        f"/proc/{process.pid}/mountinfo": MOUNTS.encode(),
        f"/sys/fs/cgroup/cpu/{own}/cpu.shares": b"1024\n",
        f"/sys/fs/cgroup/cpu/{own}/cpu.cfs_quota_us": b"50000\n",
        f"/sys/fs/cgroup/cpu/{own}/cpu.cfs_period_us": b"100000\n",
        f"/sys/fs/cgroup/memory/{own}/memory.limit_in_bytes": b"9223372036854771712\n",
    }
    own_links = f"/proc/{process.pid}/ns"
    host.linked = {f"{own_links}/net": "net:[4026531833]", f"{own_links}/mnt": "mnt:[4026532253]"}
    host.answers[("sha256sum",)] = Completed((), 0, b"abc123  /proc/1000/exe\n")
    seen = observe(host, parse_cgroups(HYBRID), process.pid, ["/data"])
    assert (seen.cpu_weight, seen.cpu_quota, seen.memory_bytes) == (1024, 0.5, None)
    assert (seen.seccomp, seen.cpus_allowed, seen.scheduler, seen.oom_score_adj) == ("2", "0-1", "other", 0)
    assert set(seen.speculation) == {"Speculation_Store_Bypass", "SpeculationIndirectBranch"}
    assert seen.namespaces == {"net": "4026531833", "mnt": "4026532253"}
    assert seen.binary_digest == "sha256:abc123"
    assert seen.mounts == {"/data": "ext4 254:0"}
    assert seen.environment == {"PATH": "/bin", "FROM_IMAGE": "yes"}


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("HOME=/data\0EMPTY=\0LINES=a=b\nc\0", {"HOME": "/data", "EMPTY": "", "LINES": "a=b\nc"}),
        ("", None),
        ("\0" * 255 + "H=/usr/bin\0HOME=/data\0", None),  # its beginning zeroed, as by Redis' title
        ("server: ready\0HOME=/data\0", None),
    ],
)
def test_an_environment_that_a_program_has_written_over_is_not_known(
    text: str, peer: dict[str, str] | None
) -> None:
    assert parse_environ(text) == peer


@pytest.mark.parametrize(
    ("nodes", "maps", "policy"),
    [
        (
            "0-1",
            b"5600 interleave:0-1 file=/usr/bin/mongod mapped=2 N0=2 kernelpagesize_kB=4\n5604 de",
            "interleave:0-1",
        ),
        ("0,2", b"", None),
        ("0", b"5600 default file=/usr/bin/mongod", None),
    ],
)
def test_the_numa_policy_of_what_may_use_several_nodes_is_that_of_its_first_mapping(
    nodes: str, maps: bytes, policy: str | None
) -> None:
    host = FakeHost()
    process = host.spawn()
    host.files[f"/proc/{process.pid}/status"] = f"Mems_allowed_list:\t{nodes}\n".encode()
    host.answers["head", "-c", "200", f"/proc/{process.pid}/numa_maps"] = Completed((), 0, maps)
    assert observe(host, parse_cgroups(HYBRID), process.pid, []).memory_policy == policy


def test_v2_limits_are_read() -> None:
    host = FakeHost()
    process = host.spawn()
    host.files |= {
        f"/proc/{process.pid}/cgroup": b"0::/tare/r/t\n",
        "/sys/fs/cgroup/tare/r/t/cpu.weight": b"100\n",
        "/sys/fs/cgroup/tare/r/t/cpu.max": b"150000 100000\n",
        "/sys/fs/cgroup/tare/r/t/memory.max": b"1073741824\n",
    }
    seen = observe(host, parse_cgroups(V2), process.pid, [])
    assert (seen.cpu_weight, seen.cpu_quota, seen.memory_bytes) == (100, 1.5, 1 << 30)
    host.files["/sys/fs/cgroup/tare/r/t/cpu.max"] = b"max 100000\n"
    host.files["/sys/fs/cgroup/tare/r/t/memory.max"] = b"max\n"
    seen = observe(host, parse_cgroups(V2), process.pid, [])
    assert (seen.cpu_quota, seen.memory_bytes) == (None, None)
    host.files["/sys/fs/cgroup/tare/r/t/memory.swap.max"] = b"4096\n"
    host.files["/sys/fs/cgroup/tare/r/t/pids.max"] = b"max\n"
    seen = observe(host, parse_cgroups(V2), process.pid, [])
    assert (seen.swap_limit, seen.pids_limit) == ("4096", "max")


@pytest.mark.parametrize(
    ("scope", "inside", "swap"),
    [("268435456", "0", "0"), ("4096", "max", "4096"), ("max", "max", "max"), ("9", "10", "9"), ("0", None, "0")],
)
def test_the_lower_swap_limit_of_a_scope_and_the_group_inside_it_is_in_force(
    scope: str, inside: str | None, swap: str
) -> None:
    """crun 1.28 with a limit of 256 MiB and no swap: 268435456 on the scope, 0 inside."""
    host = FakeHost()
    process = host.spawn()
    group = "/sys/fs/cgroup/machine.slice/libpod-1.scope"
    host.files |= {
        f"/proc/{process.pid}/cgroup": b"0::/machine.slice/libpod-1.scope/container\n",
        f"{group}/memory.swap.max": f"{scope}\n".encode(),
        **({} if inside is None else {f"{group}/container/memory.swap.max": f"{inside}\n".encode()}),
    }
    assert observe(host, parse_cgroups(V2), process.pid, []).swap_limit == swap


@pytest.mark.parametrize(
    ("memory", "both", "swap"),
    [("1048576", "1052672", "4096"), ("1048576", "9223372036854771712", "max"), ("1048576", None, None)],
)
def test_v1_limits_memory_and_swap_together(memory: str, both: str | None, swap: str | None) -> None:
    host = FakeHost()
    process = host.spawn()
    group = "/sys/fs/cgroup/memory/t"
    host.files |= {
        f"/proc/{process.pid}/cgroup": b"4:memory:/t\n",
        f"{group}/memory.limit_in_bytes": memory.encode(),
        **({} if both is None else {f"{group}/memory.memsw.limit_in_bytes": both.encode()}),
    }
    assert observe(host, parse_cgroups(V1), process.pid, []).swap_limit == swap


def test_a_process_that_ended_meanwhile_is_not_observed_rather_than_observed_without_anything() -> None:
    host = FakeHost(answers={("sha256sum",): Completed((), 1)})
    with pytest.raises(RunFailed, match="4711 ended before it could be observed"):
        observe(host, parse_cgroups(HYBRID), 4711, ["/data"])


def test_a_process_on_its_way_out_which_has_given_back_its_mounts_is_not_observed() -> None:
    host = FakeHost(answers={("sha256sum",): Completed((), 1)})
    process = host.spawn()
    stat = f"/proc/{process.pid}/stat"
    state, *fields = host.files[stat].decode().rpartition(") ")[2].split()
    fields[5] = str(0x40000 | 0x4)  # PF_EXITING, and another
    host.files[stat] = f"{process.pid} (fake) {' '.join((state, *fields))}\n".encode()
    with pytest.raises(RunFailed, match="ended before it could be observed"):
        observe(host, parse_cgroups(HYBRID), process.pid, ["/data"])
    fields[5] = str(0x40000)
    host.files[stat] = f"{process.pid} (fake) {' '.join((state, *fields))}\n".encode()
    assert observe(host, parse_cgroups(HYBRID), process.pid, ["/data"]).mounts == {}


def test_limits_stay_below_the_ceiling_where_root_may_not_lift_them() -> None:
    host = FakeHost()
    host.files |= {"/proc/self/status": STATUS.encode(), "/proc/self/limits": LIMITS.encode()}
    assert ceilings(host) == {"nofile": 20000, "nice": 0}
    results = rlimits(Limits(nofile=65536), ceilings(host))
    assert results["nofile"] == Rlimit(20000, 20000)
    assert results["memlock"] == Rlimit(-1, -1)


def test_with_the_capability_there_is_no_ceiling() -> None:
    host = FakeHost()
    host.files["/proc/self/status"] = STATUS.replace("fffeffffff", "ffffffffff").encode()
    assert ceilings(host) == {}
    assert rlimits(Limits(nofile=65536, nproc=10), {})["nofile"] == Rlimit(65536, 65536)
    assert rlimits(Limits(nproc=10), {})["nproc"] == Rlimit(10, 10)


def test_status_lines_are_split_at_the_first_colon() -> None:
    assert parse_status("A:\tb:c\nno colon\n") == {"A": "b:c"}


def test_a_quota_whose_period_went_with_its_group_is_not_taken_for_none() -> None:
    host, own = FakeHost(), "tare/r/abc"
    process = host.spawn()
    host.files |= {
        f"/proc/{process.pid}/cgroup": f"1:cpu:/{own}\n".encode(),
        f"/sys/fs/cgroup/cpu/{own}/cpu.cfs_quota_us": b"50000\n",
    }
    with pytest.raises(RunFailed, match="the period of the CPU quota cannot be read"):
        observe(host, parse_cgroups(HYBRID), process.pid, ())


def test_mounts_of_others_may_have_any_name() -> None:
    odd = b"50 1 0:9 / /media/caf\xe9\x0c\xc2\x85 rw - tmpfs tmpfs rw\n"
    host = FakeHost(files={"/proc/self/mountinfo": odd + V2.encode()})
    assert cgroups_of(host) == parse_cgroups(V2)


def test_sysctls_are_read_in_the_network_namespace_of_the_process() -> None:
    class Entered(FakeHost):
        def run(self, argv: Sequence[str], **_: Any) -> Completed:
            assert list(argv)[:6] == ["nsenter", "-t", "41", "-n", "--", "sh"]
            assert "/proc/sys/net/ipv4/tcp_ecn" in argv
            printed = b"/proc/sys/net/core/somaxconn:128\n/proc/sys/net/ipv4/tcp_rmem:4096\t131072\t6291456\n"
            return Completed(tuple(argv), 0, printed)

    assert network_settings_of(Entered(), 41, ["net.ipv4.tcp_ecn"]) == {
        "net.core.somaxconn": "128",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
    }


def test_sysctls_that_may_not_be_read_are_unknown() -> None:
    class Refused(FakeHost):
        def run(self, argv: Sequence[str], **_: Any) -> Completed:
            return Completed(tuple(argv), 1, b"")

    assert network_settings_of(Refused(), 41) is None
