"""What a container in a virtual machine is told to be, and by what it is known to be one; without starting any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import Bind, Layer, Limits, Task, Volume
from tare.deployments.rlimits import UNLIMITED, Rlimit
from tare.deployments.vm.command import Disk
from tare.deployments.vm.inside import Plain
from tare.deployments.vm.runtime import Runtime, entries, profile_of, simulated
from tare.deployments.vm_container.oci_config import CAPABILITIES, oci_config, seccomp_of
from tare.deployments.vm_container.vm_container import Contained, Seen, container_facts, layer_of, release_of
from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image, ImageConfig
from tare.sites import Completed, Output
from tare.sites.fake import FakeHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind

DATA = Path(__file__).resolve().parents[3] / "data" / "vm"
PROFILE = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": 38,
    "archMap": [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
        {"architecture": "SCMP_ARCH_S390X", "subArchitectures": ["SCMP_ARCH_S390"]},
    ],
    "syscalls": [
        {"names": ["io_setup", "read"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["arch_prctl"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64", "x32"]}},
        {"names": ["s390_pci_mmio_read"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390", "s390x"]}},
        {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"]}},
        {"names": ["chroot"], "action": "SCMP_ACT_ERRNO", "excludes": {"caps": ["CAP_SYS_CHROOT"]}},
        {"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["init_module"], "action": "SCMP_ACT_ERRNO", "excludes": {"caps": ["CAP_SYS_MODULE"]}},
        {"names": ["settimeofday"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_TIME"]}},
    ],
}
"""In the form of those that Docker and containers-common bring, a rule of each kind."""
CONFIG = ImageConfig(env=(("LANG", "C"),), user="db", data_dir="/data")
TASK = Task(
    "tare-1-sut",
    Image("i", "sha256:0", "/images/0/rootfs", None, CONFIG),
    ("server", "--port", "1"),
    Output("/o", "/e"),
    "tare/1",
    binds=(Bind("/work/data", "/data"), Bind("/work/run", "/run/tare", read_only=True)),
    limits=Limits(memory_bytes=256 << 20),
    network=NetworkKind.USER,
)
NAMES = {"/etc/hosts": "/names/etc-hosts"}
LIMITS = {"nofile": Rlimit(1024, 4096), "data": Rlimit(UNLIMITED, UNLIMITED)}


def config(task: Task = TASK) -> dict[str, Any]:
    places = {target: f"/disks/{n}" for n, target in enumerate(task.targets)}
    return oci_config(task, places, NAMES, LIMITS, {"defaultAction": "SCMP_ACT_ERRNO"})


def test_a_container_gets_what_a_task_gets_anywhere() -> None:
    process = config()["process"]
    assert process["args"] == ["server", "--port", "1"]
    assert process["env"][0] == "HOSTNAME=tare-1-sut"
    assert {"LANG=C"} < set(process["env"])
    assert any(each.startswith("PATH=") for each in process["env"])
    assert {"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096} in process["rlimits"]
    assert {"type": "RLIMIT_DATA", "soft": 2**64 - 1, "hard": 2**64 - 1} in process["rlimits"]
    linux = config()["linux"]
    assert linux["resources"]["memory"] == {"limit": 256 << 20, "swap": 256 << 20}
    assert linux["resources"]["pids"] == {"limit": -1}
    assert {each["type"] for each in linux["namespaces"]} == {"cgroup", "ipc", "mount", "pid", "uts"}
    assert "memory" not in config(replace(TASK, limits=Limits()))["linux"]["resources"]


def test_directories_are_bound_in_after_the_scratch_places_and_the_root_cannot_be_written() -> None:
    bundle = config()
    assert bundle["root"] == {"path": "rootfs", "readonly": True}
    targets = [each["destination"] for each in bundle["mounts"]]
    assert targets.index("/run") < targets.index("/run/tare")
    mounts = {each["destination"]: each for each in bundle["mounts"]}
    assert (mounts["/data"]["source"], mounts["/data"]["options"][-1]) == ("/disks/0", "rw")
    assert (mounts["/run/tare"]["source"], mounts["/run/tare"]["options"][-1]) == ("/disks/1", "ro")
    assert (mounts["/etc/hosts"]["source"], mounts["/etc/hosts"]["options"][-1]) == ("/names/etc-hosts", "ro")


def test_data_in_a_layer_make_the_root_writable_and_are_bound_nowhere() -> None:
    bundle = config(replace(TASK, binds=(), layers=(Layer("/work/data", "/data"),)))
    assert bundle["root"]["readonly"] is False
    assert "/data" not in {each["destination"] for each in bundle["mounts"]}


@pytest.mark.parametrize("copy_up", [False, True])
def test_the_machine_is_told_which_disk_is_the_layer(copy_up: bool) -> None:
    disks = [
        Disk("/r", "root", "/", read_only=True, cache="writeback", aio="threads"),
        Disk("/work/run.disk", "disk0", "/run/tare", read_only=True, cache="none", aio="threads"),
        Disk("/work/data.disk", "disk1", "/data", read_only=False, cache="none", aio="threads"),
    ]
    task = replace(TASK, binds=TASK.binds[1:], layers=(Layer("/work/data", "/data", copy_up=copy_up),))
    assert layer_of(task, disks) == {"serial": "disk1", "target": "/data", "copy_up": copy_up}
    assert layer_of(TASK, disks) is None


def test_tasks_that_a_machine_has_no_means_for_are_refused(tmp_path: Path) -> None:
    host, ledger = FakeHost(), SqliteLedger(tmp_path / "ledger.sqlite")
    layered = replace(TASK, layers=(Layer("/a", "/a"),))
    with pytest.raises(RunFailed, match="no engine"):
        Plain(host, ledger).must_take(layered)
    contained = Contained(host, ledger)
    contained.must_take(layered)
    for task in (
        replace(TASK, volumes=(Volume("v", "/data"),)),
        replace(TASK, layers=(Layer("/a", "/a"), Layer("/b", "/b"))),
    ):
        with pytest.raises(RunFailed, match="no volumes, and one data layer"):
            contained.must_take(task)
    host.answers[("find",)] = Completed((), 0, b"/rootfs/a/of the image")
    with pytest.raises(EnvironmentLacks, match="files of its own in /a"):
        contained.must_take(layered)


def names(rules: Mapping[str, Any], action: str) -> set[str]:
    found = [each for each in rules["syscalls"] if each["action"] == action and "args" not in each]
    return {name for each in found for name in each["names"]}


def test_the_seccomp_profile_is_cut_to_capabilities_and_architecture() -> None:
    plain = seccomp_of(PROFILE, frozenset(CAPABILITIES), (6, 1))
    assert plain["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]
    assert (plain["defaultAction"], plain["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    allowed, denied = names(plain, "SCMP_ACT_ALLOW"), names(plain, "SCMP_ACT_ERRNO")
    assert {"read", "chroot", "arch_prctl", "io_setup"} <= allowed
    assert not {"bpf", "init_module", "settimeofday", "s390_pci_mmio_read"} & allowed
    assert {"bpf", "init_module"} <= denied
    assert "chroot" not in denied
    assert "io_uring_setup" not in allowed
    assert "bpf" in names(seccomp_of(PROFILE, frozenset({"CAP_SYS_ADMIN"}), (6, 1)), "SCMP_ACT_ALLOW")


def test_a_rule_may_ask_for_a_kernel() -> None:
    rule = {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}}
    profile = {"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [rule]}
    assert names(seccomp_of(profile, frozenset(), (6, 1)), "SCMP_ACT_ALLOW") == {"ptrace"}
    assert names(seccomp_of(profile, frozenset(), (4, 4)), "SCMP_ACT_ALLOW") == set()
    assert release_of("linux-image-6.1.0-56-cloud-amd64") == (6, 1, 0)
    with pytest.raises(RunFailed, match="contains no kernel release"):
        release_of("linux-image-cloud")


OWN = {"cgroup": "1", "ipc": "2", "mnt": "3", "net": "9", "pid": "4", "uts": "5"}
MACHINE = {"cgroup": "6", "ipc": "6", "mnt": "6", "net": "9", "pid": "6", "uts": "6"}
OVERLAY = "30 1 0:25 / / ro,relatime - overlay overlay ro,lowerdir=/task,upperdir=/upper/upper\n"
CGROUP = "0::/task/container\n"


def test_a_container_is_known_by_namespaces_root_and_control_group() -> None:
    verdict = container_facts(Seen(OWN, MACHINE, CGROUP, OVERLAY))
    assert (verdict.root, verdict.cgroup, verdict.network) == ("overlay", "/task/container", "host")
    assert verdict.namespaces == ("cgroup", "ipc", "mnt", "pid", "uts")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"own": {**OWN, "pid": "6"}}, "its pid namespace is the machine's"),
        ({"own": {**OWN, "mnt": "6", "uts": "6"}}, "its mnt namespace is the machine's; its uts namespace"),
        ({"own": {}}, "its cgroup namespace"),
        ({"mountinfo": "30 1 254:0 / / ro - ext4 /dev/vda ro\n"}, "its root is ext4 and no overlay"),
        ({"mountinfo": ""}, "its root is not to be seen"),
        ({"cgroup": "0::/task\n"}, "its control group is /task and not /task/container"),
    ],
)
def test_what_is_no_container_is_refused(changed: dict[str, Any], why: str) -> None:
    seen = {"own": OWN, "machine": MACHINE, "cgroup": CGROUP, "mountinfo": OVERLAY, **changed}
    with pytest.raises(RunFailed, match="in no container") as error:
        container_facts(Seen(**seen))
    assert why in error.value.what


def test_apt_tells_what_crun_takes() -> None:
    packages = simulated((DATA / "apt-simulate-crun.txt").read_text())
    assert packages["crun"] == "1.8.1-1+deb12u1"
    assert {"libc6", "libseccomp2", "libcap2", "libyajl2", "libsystemd0"} <= set(packages)
    assert simulated("E: Unable to locate package crun") == {}


def test_the_runtime_stands_where_its_loader_looks() -> None:
    listing = ("find", "/c/lib", "-type", "f")
    files = {"/c/crun": b"crun", "/c/lib/libc.so.6": b"c", "/c/lib/ld-linux-x86-64.so.2": b"ld"}
    host = FakeHost(
        files=files, answers={listing: Completed((), 0, b"/c/lib/libc.so.6\n/c/lib/ld-linux-x86-64.so.2\n")}
    )
    made = {each.name: each.content for each in entries(host, Runtime("/c", "1"))}
    assert made["lib64/ld-linux-x86-64.so.2"] == b"ld"
    assert made["lib/x86_64-linux-gnu/libc.so.6"] == b"c"
    assert made["bin/crun"] == b"crun"
    with pytest.raises(EnvironmentLacks, match=r"has no ld-linux"):
        entries(FakeHost(), Runtime("/c", "1"))
    with pytest.raises(EnvironmentLacks, match="has no seccomp profile"):
        profile_of(FakeHost(), Runtime("/c", "1"))
