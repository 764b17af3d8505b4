from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import Limits, Right
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.vm.accelerator import why_no_machine
from tare.errors import EnvironmentLacks, RunFailed
from tare.plan.expand import with_control
from tare.plan.model import Plan
from tare.run.attempt.context import limits_of
from tare.run.rights import (
    Means,
    Needs,
    lacking,
    lacking_runtimes,
    lowered_limits,
    means_of,
    needs_of,
    placements_of,
    require,
)
from tare.sites import Completed
from tare.sites.binaries import GUEST, candidates
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.study.model import LimitsSpec, StorageSpec
from tare.study.protocol_spec import DuetSpec
from tare.study.values import NetworkKind, cpu_set, size_bytes

RICH = Means(
    root=True,
    no_engine=None,
    cpus=frozenset({0, 1}),
    memory_bytes=8 << 30,
    free_disk_bytes=100 << 30,
    no_image={},
)
NEEDS = Needs({"bare": frozenset({Right.ROOT}), "container": frozenset({Right.ENGINE})}, disk_bytes=1e9)


@pytest.fixture
def plan(plans: Any) -> Plan:
    """One arm with a container for a server and a bare client, both limited."""
    plan: Plan = plans(arms=("boxed",))
    arm = plan.study.arms[0]
    limits = LimitsSpec(cpus="0", memory="1G")
    sut = arm.settings.sut.model_copy(
        update={"deployment": "container", "network": NetworkKind.BRIDGE, "limits": limits}
    )
    client = arm.settings.sides["client"].model_copy(update={"deployment": "bare", "limits": LimitsSpec(cpus="1")})
    settings = arm.settings.model_copy(update={"sut": sut, "client": client})
    study = plan.study.model_copy(update={"arms": (arm.model_copy(update={"settings": settings}),)})
    return plan.model_copy(update={"study": study})


def test_a_machine_that_has_everything_lacks_nothing(plan: Plan) -> None:
    assert lacking(plan, NEEDS, RICH) == ()


@pytest.mark.parametrize(
    ("means", "problem"),
    [
        ({"root": False}, r"root is needed .* \(arms: boxed\)"),
        ({"no_engine": "no socket"}, r"a container engine is needed \(arms: boxed\): no socket"),
        ({"cpus": frozenset({0})}, "names CPU 1, but this host has 0"),
        ({"memory_bytes": 1 << 29}, r"arm boxed may use 1\.0 GiB .* has 0\.5 GiB"),
        ({"free_disk_bytes": 1 << 20}, r"needs about 1\.1 GB of disk, but 0\.0 GB"),
        ({"no_image": {"mariadb": "mmdebstrap is missing"}}, "mariadb is not available: mmdebstrap is missing"),
        ({"no_machine": "no QEMU"}, "virtual machines cannot be started: no QEMU"),
        (
            {"no_home": "/a/file/x cannot be made: /a/file is not a directory"},
            "/a/file is not a directory; set TARE_HOME",
        ),
        ({"no_named": {"podman": "no engine `podman`: nobody answers"}}, "no engine `podman`: nobody answers"),
        ({"no_pods": ("nft is not there",)}, "no pod can be made: nft is not there"),
        ({"no_nfs": "no client"}, "the storage nfs is not available: no client"),
    ],
)
def test_what_is_lacking_is_named(plan: Plan, means: dict[str, Any], problem: str) -> None:
    with pytest.raises(EnvironmentLacks, match=problem) as caught:
        require(plan, NEEDS, replace(RICH, **means))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("arms", "listed"),
    [(4, "arms: a0, a1, a2, a3): no socket"), (144, "144 of 144 arms: a0, a1, a2, a3 and 140 more): no socket")],
)
def test_of_many_arms_a_few_are_named(plan: Plan, arms: int, listed: str) -> None:
    (boxed,) = plan.study.arms
    many = tuple(boxed.model_copy(update={"name": f"a{n}"}) for n in range(arms))
    wide = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": many})})
    (problem,) = lacking(wide, NEEDS, replace(RICH, no_engine="no socket"))
    assert problem == f"a container engine is needed ({listed}"


def test_a_container_in_a_machine_has_its_layers_of_no_engine(plan: Plan) -> None:
    arm = plan.study.arms[0]
    settings = arm.settings
    given = {"deployment": "vm-container", "network": NetworkKind.TAP, "storage": StorageSpec(kind="layer")}
    boxed = settings.model_copy(update={"sut": settings.sut.model_copy(update=given)})
    study = plan.study.model_copy(update={"arms": (arm.model_copy(update={"settings": boxed}),)})
    machines = plan.model_copy(update={"study": study})
    needs = needs_of(machines, DEPLOYMENTS, None)
    assert lacking(machines, needs, replace(RICH, no_engine="no socket")) == ()
    assert "root is needed" in lacking(machines, needs, replace(RICH, root=False))[0]
    (short,) = lacking(machines, needs, replace(RICH, memory_bytes=1 << 30))
    assert "may use 1.2 GiB of memory" in short  # 1 GiB of the limit, and 256 MiB of the machine's kernel


def test_each_node_of_a_cluster_has_the_memory_of_its_limit(plan: Plan) -> None:
    arm = plan.study.arms[0]
    settings = arm.settings.model_copy(update={"sut": arm.settings.sut.model_copy(update={"nodes": 3})})
    study = plan.study.model_copy(update={"arms": (arm.model_copy(update={"settings": settings}),)})
    ring = plan.model_copy(update={"study": study})
    (short,) = lacking(ring, NEEDS, replace(RICH, memory_bytes=2 << 30))
    assert "may use 3.0 GiB of memory" in short


def test_all_that_is_lacking_is_told_at_once(plan: Plan) -> None:
    poor = Means(
        root=False, no_engine="no", cpus=frozenset(), memory_bytes=1, free_disk_bytes=1, no_image={"x": "no"}
    )
    assert len(lacking(plan, NEEDS, poor)) == 7


def test_what_could_not_be_read_is_not_held_against_the_machine(plan: Plan) -> None:
    unread = replace(RICH, cpus=None, memory_bytes=None, free_disk_bytes=None)
    assert lacking(plan, replace(NEEDS, disk_bytes=None), unread) == ()


def test_a_container_needs_no_root(plan: Plan) -> None:
    arm = plan.study.arms[0]
    client = arm.settings.sides["client"].model_copy(update={"deployment": "container"})
    arm = arm.model_copy(update={"settings": arm.settings.model_copy(update={"client": client})})
    boxed = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (arm,)})})
    assert lacking(boxed, NEEDS, replace(RICH, root=False)) == ()


def test_means_are_read_from_the_host(plan: Plan) -> None:
    host = FakeHost(
        answers={
            ("id", "-u"): Completed(("id", "-u"), 0, b"1000\n"),
            ("df",): lambda argv, _: Completed(tuple(argv), int(argv[-1] != "/var"), b"Avail\n4096\n"),
        },
        files={
            "/sys/devices/system/cpu/online": b"0-2,5\n",
            "/proc/meminfo": b"MemTotal:       2048 kB\nMemFree: 1 kB\n",
        },
    )
    means = means_of(host, Layout("/var/lib/tare"), no_engine="none", no_image=lambda _: "no", plan=plan)  # type: ignore[arg-type]  # a fake in place of a host
    assert means == Means(
        root=False,
        no_engine="none",
        cpus=frozenset({0, 1, 2, 5}),
        memory_bytes=2048 * 1024,
        free_disk_bytes=4096,
        no_image={"tar:fake": "no"},
    )


def test_programs_for_machines_are_looked_for_only_where_a_machine_is_wanted(plan: Plan) -> None:
    host = FakeHost(
        answers={
            ("id", "-u"): Completed((), 0, b"0\n"),
            ("df",): Completed((), 0, b"Avail\n4096\n"),
            ("qemu-system-x86_64",): RunFailed("no such program"),
        }
    )

    def means(deployment: str) -> Means:
        arm = plan.study.arms[0]
        sut = arm.settings.sut.model_copy(update={"deployment": deployment})
        other = arm.model_copy(update={"settings": arm.settings.model_copy(update={"sut": sut})})
        wanted = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (other,)})})
        layout = Layout(Path("/var/lib/tare"))
        return means_of(host, layout, no_engine=None, no_image=lambda _: None, plan=wanted)

    assert "qemu-system-x86" in (means("vm").no_machine or "")
    assert means("container").no_machine is None


def test_nfs_is_looked_for_only_where_data_are_to_lie_on_it(plan: Plan) -> None:
    host = FakeHost(
        answers={("id", "-u"): Completed((), 0, b"0\n"), ("df",): Completed((), 0, b"Avail\n4096\n")},
    )

    def means(kind: str) -> Means:
        arm = plan.study.arms[0]
        sut = arm.settings.sut.model_copy(update={"storage": StorageSpec(kind=kind)})
        other = arm.model_copy(update={"settings": arm.settings.model_copy(update={"sut": sut})})
        wanted = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (other,)})})
        layout = Layout(Path("/var/lib/tare"))
        return means_of(host, layout, no_engine=None, no_image=lambda _: None, plan=wanted)

    assert means("bind").no_nfs is None
    assert not [argv for argv in host.ran() if argv[0] in ("modprobe", "ganesha.nfsd")]
    assert "no NFS client" in (means("nfs").no_nfs or "")


def test_a_machine_takes_programs_that_make_disks_and_one_that_is_its_first() -> None:
    host = FakeHost()
    assert "tare-guest" in (why_no_machine(host) or "")
    for path in candidates(GUEST):
        host.answers[path,] = Completed((), 2, b"", b"process 1 of a virtual machine")
    assert why_no_machine(host) is None
    host.answers["debugfs",] = RunFailed("no such program")
    lacks = why_no_machine(host)
    assert lacks is not None
    assert "e2fsprogs" in lacks


@pytest.mark.parametrize(("text", "cpus"), [("0", {0}), ("0-1,3", {0, 1, 3}), ("2-2\n", {2})])
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert cpu_set(text) == cpus


def test_limits_in_the_units_of_deployments() -> None:
    spec = LimitsSpec(cpus="0", cpu_quota=1.5, memory="512M", nofile=1024)
    assert limits_of(spec) == Limits(cpus="0", cpu_quota=1.5, memory_bytes=512 << 20, nofile=1024)
    assert (size_bytes("3"), size_bytes("2K"), size_bytes("1G")) == (3, 2048, 1 << 30)


@pytest.mark.parametrize(("cpus", "enough"), [({0, 1}, True), ({0}, False)])
def test_a_duet_needs_a_set_of_cpus_for_each_arm(plan: Plan, cpus: set[int], *, enough: bool) -> None:
    duet = _in_a_duet(plan)
    lacks = lacking(duet, NEEDS, replace(RICH, cpus=frozenset(cpus)))
    assert lacks == () if enough else "a duet needs CPUs 0 and 1, one set per arm" in lacks[0]


def test_a_duet_needs_the_memory_of_both_arms_at_once(plan: Plan) -> None:
    lacks = lacking(_in_a_duet(plan), NEEDS, replace(RICH, memory_bytes=3 << 29))
    assert "arm baseline-again with boxed may use 2.0 GiB" in lacks[0]


def _in_a_duet(plan: Plan) -> Plan:
    sides = plan.study.arms[0].settings
    free = {
        side: placement.model_copy(update={"limits": placement.limits.model_copy(update={"cpus": None})})
        for side, placement in sides.sides.items()
    }
    arm = plan.study.arms[0].model_copy(update={"settings": sides.model_copy(update=free)})
    study = plan.study.model_copy(update={"arms": (arm,), "protocol": DuetSpec(name="duet")})
    return plan.model_copy(update={"study": with_control(study)})


def test_an_arm_of_a_named_engine_does_not_need_the_default_one(plan: Plan) -> None:
    (boxed,) = plan.study.arms
    sut = boxed.settings.sut.model_copy(update={"engine": "podman"})
    named = boxed.model_copy(update={"settings": boxed.settings.model_copy(update={"sut": sut})})
    study = plan.study.model_copy(update={"arms": (named,)})
    assert lacking(plan.model_copy(update={"study": study}), NEEDS, replace(RICH, no_engine="no socket")) == ()


@pytest.mark.parametrize(
    ("runtime", "engine", "there", "problem"),
    [
        ("youki", None, ["runc", "crun"], "the engine has no runtime `youki`, but crun, runc (name it in"),
        ("runc", None, ["runc"], None),
        ("io.containerd.kata.v2", None, ["runc"], None),
        ("youki", None, None, None),
        ("crun", "podman", ["runc"], None),
    ],
)
def test_a_runtime_that_the_engine_lacks_is_told_before_anything_is_started(
    plan: Plan, runtime: str, engine: str | None, there: list[str] | None, problem: str | None
) -> None:
    (boxed,) = plan.study.arms
    sut = boxed.settings.sut.model_copy(update={"runtime": runtime, "engine": engine})
    named = boxed.model_copy(update={"settings": boxed.settings.model_copy(update={"sut": sut})})
    asking = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (named,)})})
    refusals = lacking_runtimes(placements_of(asking), lambda: there)
    assert refusals.get(runtime, "").startswith(problem or "")
    assert (runtime in refusals) is (problem is not None)


def test_engines_are_asked_for_runtimes_only_where_one_is_named(plan: Plan) -> None:
    assert lacking_runtimes(placements_of(plan), lambda: pytest.fail("asked")) == {}


def test_open_files_that_the_host_lowers_are_told_where_a_study_asks_for_them(plan: Plan) -> None:
    limits = "Limit                     Soft Limit           Hard Limit           Units     \n"
    limits += "Max open files            20000                20000                files     \n"
    host = FakeHost(
        files={"/proc/self/status": b"CapEff:\t0000000000000000\n", "/proc/self/limits": limits.encode()}
    )
    assert lowered_limits(plan.study, host) == ()
    (boxed,) = plan.study.arms
    sut = boxed.settings.sut.model_copy(update={"limits": LimitsSpec(nofile=65536)})
    asking = boxed.model_copy(update={"settings": boxed.settings.model_copy(update={"sut": sut})})
    (lowered,) = lowered_limits(plan.study.model_copy(update={"arms": (asking,)}), host)
    assert lowered.startswith("sut.limits.nofile: 65536 requested, but this host allows 20000")
