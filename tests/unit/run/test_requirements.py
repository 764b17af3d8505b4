"""What a plan requires of the machine that tare runs on, and which of it the machine lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tare.deployments import Limits
from tare.deployments.vm.accelerator import MACHINE
from tare.errors import EnvironmentLacks, RunFailed
from tare.images.requirement import IMAGES
from tare.monitors.fake import FakeMonitor
from tare.plan.expand import with_control
from tare.plan.model import Plan
from tare.record.engine_facts import EngineFacts
from tare.requirements import HostPlan, Use, engines, some_of
from tare.requirements.engines import LOG_DRIVERS, RUNTIMES
from tare.requirements.resources import HUGE_PAGES, free_bytes
from tare.run.attempt.units import limits_of
from tare.run.limits_of_user import lowered_limits
from tare.run.local import Engine, local_machine, refuse_blocked
from tare.run.requirements import PlugIns, uses_of
from tare.sites import Completed
from tare.sites.binaries import GUEST, candidates
from tare.sites.engines import Engines
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.study.model import ArmSettings, LimitsSpec, StorageSpec, SutSpec
from tare.study.protocol_spec import DuetSpec
from tare.study.values import NetworkKind, cpu_set, size_bytes

PLUG_INS = PlugIns(monitors={"probe": FakeMonitor()})
NONE = Completed((), 1)


class NoEngines(Engines):
    """Engines of which none answers by its name."""

    def client(self, name: str) -> Any:
        raise EnvironmentLacks(f"no engine `{name}`: nobody answers")


def rich(**changed: Any) -> HostPlan:
    """A host that has everything: root, two CPUs, 8 GiB of memory, 100 GB of disk. `memory`, `disk`: in bytes."""
    memory, disk = changed.pop("memory", 8 << 30), changed.pop("disk", 10**11)
    host = FakeHost(
        answers={
            ("id", "-u"): Completed((), 0, changed.pop("user", b"0\n")),
            ("df",): Completed((), 0, f"Avail\n{disk}\n".encode()),
        },
        files={
            "/sys/devices/system/cpu/online": changed.pop("cpus", b"0-1\n"),
            "/proc/meminfo": f"MemTotal: {memory >> 10} kB\n".encode(),
        },
    )
    host.answers |= changed.pop("answers", {})
    return replace(HostPlan(host, Layout(Path("/var/lib/tare")), data_bytes=1e9, engines=NoEngines()), **changed)


def lacking(plan: Plan, there: HostPlan) -> list[str]:
    """What the plan lacks on the host, without its images."""
    own = replace(there, uses=uses_of(plan), study=plan.study)
    return list(PLUG_INS.blockers(own, len(plan.study.arms)))


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


def with_sut(plan: Plan, **changed: Any) -> Plan:
    """The plan with other values of its one arm's server."""
    (arm,) = plan.study.arms
    sut = arm.settings.sut.model_copy(update=changed)
    other = arm.model_copy(update={"settings": arm.settings.model_copy(update={"sut": sut})})
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (other,)})})


def test_a_machine_that_has_everything_lacks_nothing(plan: Plan) -> None:
    assert lacking(plan, rich()) == []


HOME_IS_A_FILE = {("test", "-d"): NONE, ("test", "-d", "/"): Completed((), 0), ("test", "-e"): Completed((), 0)}


@pytest.mark.parametrize(
    ("changed", "who", "why"),
    [
        (
            {"user": b"1000\n"},
            "root, needed by bare tasks, virtual machines, pods, containerd, control groups",
            "this user is not root; run tare with sudo, or run a study whose servers and clients are all",
        ),
        ({"no_engine": "no socket"}, "engine, needed by containers", "no socket"),
        (
            {"cpus": b"0\n"},
            "CPUs, needed by limits.cpus",
            "limits.cpus '1' names CPU 1, but this host has 0; change limits.cpus in the study",
        ),
        (
            {"memory": 1 << 29},
            "memory, needed by limits.memory",
            "arm boxed may use 1.0 GiB of memory by its limits, but this host has 0.5 GiB; lower limits.memory",
        ),
        (
            {"disk": 1 << 20},
            "disk, needed by loaded data",
            "the data needs about 1.1 GB of disk, but 0.0 GB are free; make room, or set TARE_HOME to a",
        ),
        (
            {"answers": HOME_IS_A_FILE},
            "home, needed by every run",
            "/var/lib/tare cannot be made: /var/lib/tare is not a directory; set TARE_HOME to a directory",
        ),
        (
            {"answers": {("sh", "-c", "command -v python3"): NONE}},
            "python3, needed by bare tasks and the cost of monitors",
            "it is missing; install it",
        ),
    ],
)
def test_what_is_lacking_is_named_with_who_needs_it_and_what_to_do(
    plan: Plan, changed: dict[str, Any], who: str, why: str
) -> None:
    (problem,) = lacking(plan, rich(**changed))
    needed, _, because = problem.partition(" (arms: boxed): ")
    assert (needed[: len(who)], because[: len(why)]) == (who, why)


@pytest.mark.parametrize(
    ("sut", "answers", "who", "why"),
    [
        (
            {"deployment": "vm"},
            {("qemu-system-x86_64",): RunFailed("no such program")},
            "virtual machines, needed by arms with `deployment: vm` or `vm-container`",
            "virtual machines need QEMU: no such program (apt-get install qemu-system-x86)",
        ),
        (
            {"storage": StorageSpec(kind="nfs")},
            {("ganesha.nfsd",): RunFailed("ganesha.nfsd cannot be run")},
            "NFS, needed by the storage `nfs`",
            "ganesha.nfsd cannot be run (apt-get install nfs-ganesha nfs-ganesha-vfs iproute2)",
        ),
        (
            {"storage": StorageSpec(kind="block", file_system="xfs")},
            {("sh", "-c", "command -v mkfs.xfs"): NONE},
            "file systems, needed by the storage `block`",
            "mkfs.xfs is not installed; apt-get install xfsprogs",
        ),
        (
            {"engine": "podman"},
            {},
            "engine podman, needed by arms with `engine: podman`",
            "no engine `podman`: nobody answers",
        ),
        (
            {"deployment": "containerd"},
            {("test", "-S"): NONE},
            "containerd, needed by arms with `deployment: containerd`",
            "no containerd runs on fake: ",
        ),
        (
            {"network": NetworkKind.PASTA},
            {("pasta",): RunFailed("no such program")},
            "pasta, needed by the network `pasta` of rootless Podman",
            "pasta is not installed; apt-get install passt",
        ),
    ],
)
def test_what_one_plug_in_needs_is_asked_only_where_an_arm_uses_it(
    plan: Plan, sut: dict[str, Any], answers: dict[Any, Any], who: str, why: str
) -> None:
    there = rich(answers=answers)
    assert lacking(plan, there) == []
    (problem,) = lacking(with_sut(plan, **sut), there)
    assert problem.startswith(f"{who} (arms: boxed): {why}")


@pytest.mark.parametrize(
    ("arms", "listed"),
    [(4, "arms: a0, a1, a2, a3): no socket"), (144, "all 144 arms): no socket")],
)
def test_of_many_arms_a_few_are_named(plan: Plan, arms: int, listed: str) -> None:
    (boxed,) = plan.study.arms
    many = tuple(boxed.model_copy(update={"name": f"a{n}"}) for n in range(arms))
    wide = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": many})})
    (problem,) = lacking(wide, rich(no_engine="no socket"))
    assert problem == f"engine, needed by containers ({listed}"


def test_many_arms_but_not_all_are_counted_and_a_few_named() -> None:
    assert some_of(("a", "b", "c", "d", "e"), 7) == "5 of 7 arms: a, b, c, d and 1 more"


def test_a_container_in_a_machine_has_its_layers_of_no_engine(plan: Plan) -> None:
    guest = Completed((), 2, b"", b"process 1 of a virtual machine")
    answers: dict[Any, Any] = {(path,): guest for path in candidates(GUEST)}
    machines = with_sut(plan, deployment="vm-container", network=NetworkKind.TAP, storage=StorageSpec(kind="layer"))
    assert lacking(machines, rich(answers=answers, no_engine="no socket")) == []
    assert lacking(machines, rich(answers=answers, user=b"1000\n"))[0].startswith("root, needed by")
    (short,) = lacking(machines, rich(answers=answers, memory=1 << 30))
    assert "may use 1.2 GiB of memory" in short  # 1 GiB of the limit, and 256 MiB of the machine's kernel


def test_each_node_of_a_cluster_has_the_memory_of_its_limit(plan: Plan) -> None:
    (short,) = lacking(with_sut(plan, nodes=3), rich(memory=2 << 30))
    assert "may use 3.0 GiB of memory" in short


def test_all_that_is_lacking_is_named_at_once_and_nothing_is_started(plan: Plan, tmp_path: Path) -> None:
    machine = local_machine(plan, Engine(None, "no socket"), None, Layout(tmp_path))
    poor = rich(user=b"1000\n", cpus=b"7\n", memory=1 << 20, disk=1).host
    machine = replace(machine, site=replace(machine.site, sut=poor, client=poor), monitors=PLUG_INS.monitors)
    poor.answers["mmdebstrap", "--version"] = NONE  # type: ignore[attr-defined]  # it is a fake
    with pytest.raises(EnvironmentLacks, match="cannot run tiny; nothing was started:") as caught:
        refuse_blocked(plan, machine, Engine(None, "no socket"), 1e9)
    assert caught.value.exit_code == 3
    named = [line.partition(",")[0] for line in str(caught.value).splitlines()[1:]]
    assert sorted(named) == [
        f"  - {name}" for name in ("CPUs", "CPUs", "disk", "engine", "images", "memory", "root")
    ]


def test_what_could_not_be_read_is_not_held_against_the_machine(plan: Plan) -> None:
    unread = rich(data_bytes=None)
    unread.host.files.clear()  # type: ignore[attr-defined]  # it is a fake
    assert lacking(plan, unread) == []


def test_a_container_needs_no_root(plan: Plan) -> None:
    (arm,) = plan.study.arms
    client = arm.settings.sides["client"].model_copy(update={"deployment": "container"})
    arm = arm.model_copy(update={"settings": arm.settings.model_copy(update={"client": client})})
    boxed = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (arm,)})})
    assert lacking(boxed, rich(user=b"1000\n")) == []


def test_free_disk_is_that_of_the_nearest_directory() -> None:
    def df(argv: Sequence[str], _: bytes) -> Completed:
        return Completed(tuple(argv), int(argv[-1] != "/var"), b"Avail\n4096\n")

    assert free_bytes(FakeHost(answers={("df",): df}), "/var/lib/tare") == 4096


@pytest.mark.parametrize(
    ("reference", "why"),
    [("recipe:mariadb", "building it takes mmdebstrap: apt-get install mmdebstrap"), ("tar:/no/such", "/no/such")],
)
def test_an_image_that_is_neither_there_nor_can_be_made_is_named(reference: str, why: str, tmp_path: Path) -> None:
    host = FakeHost(answers={("mmdebstrap", "--version"): NONE})
    use = Use("boxed", SutSpec(image=reference, deployment="container"))
    (lack,) = IMAGES.ask(HostPlan(host, Layout(tmp_path), uses=(use,)))
    assert str(lack).startswith(f"the image {reference} is not available: ")
    assert why in str(lack)


def test_a_machine_takes_programs_that_make_disks_and_one_that_is_its_first() -> None:
    host = FakeHost()
    assert "tare-guest" in (MACHINE.why_not(HostPlan(host)) or "")
    for path in candidates(GUEST):
        host.answers[path,] = Completed((), 2, b"", b"process 1 of a virtual machine")
    assert MACHINE.why_not(HostPlan(host)) is None
    host.answers["debugfs",] = RunFailed("no such program")
    assert "e2fsprogs" in (MACHINE.why_not(HostPlan(host)) or "")


@pytest.mark.parametrize(("text", "cpus"), [("0", {0}), ("0-1,3", {0, 1, 3}), ("2-2\n", {2})])
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert cpu_set(text) == cpus


def test_limits_in_the_units_of_deployments() -> None:
    spec = LimitsSpec(cpus="0", cpu_quota=1.5, memory="512M", nofile=1024)
    assert limits_of(spec) == Limits(cpus="0", cpu_quota=1.5, memory_bytes=512 << 20, nofile=1024)
    assert (size_bytes("3"), size_bytes("2K"), size_bytes("1G")) == (3, 2048, 1 << 30)


@pytest.mark.parametrize(("cpus", "enough"), [({0, 1}, True), ({0}, False)])
def test_a_duet_needs_a_set_of_cpus_for_each_arm(plan: Plan, cpus: set[int], *, enough: bool) -> None:
    lacks = lacking(_in_a_duet(plan), rich(cpus=",".join(map(str, sorted(cpus))).encode()))
    assert lacks == [] if enough else "a duet needs CPUs 0 and 1, one set per arm" in lacks[0]


def test_a_duet_needs_the_memory_of_both_arms_at_once(plan: Plan) -> None:
    lacks = lacking(_in_a_duet(plan), rich(memory=3 << 29))
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
    (problem,) = lacking(with_sut(plan, engine="podman"), rich(no_engine="no socket"))
    assert problem.startswith("engine podman, needed by")


@pytest.mark.parametrize(
    ("runtime", "engine", "there", "problem"),
    [
        ("youki", None, ["runc", "crun"], "the engine has no runtime `youki`, but crun, runc (name it in"),
        ("runc", None, ["runc"], None),
        ("io.containerd.kata.v2", None, ["runc"], None),
        ("youki", None, None, None),
        ("crun", "podman", ["runc"], None),
        (None, None, "not asked", None),
    ],
)
def test_a_runtime_that_the_engine_lacks_is_named_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, runtime: str | None, engine: Any, there: Any, problem: str | None
) -> None:
    def facts(_: object) -> EngineFacts:
        assert there != "not asked"
        return EngineFacts(engine_runtimes=tuple(there))

    monkeypatch.setattr(engines, "engine_facts", facts)
    sut = SutSpec(image="i", deployment="container", runtime=runtime, engine=engine)
    use = Use("boxed", sut, ArmSettings(sut=sut, workload_name="w", workload={}))
    client: Any = None if there is None else object()
    why = RUNTIMES.why_not(HostPlan(FakeHost(), uses=(use,), engine=client))
    assert why is None if problem is None else (why or "").startswith(problem)


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


@pytest.mark.parametrize(
    ("settings", "reserved", "lacks"),
    [
        ({"huge_pages": "on"}, 0, True),
        ({"large_pages": True}, 0, True),
        ({"huge_pages": "on"}, 512, False),
        ({"huge_pages": "try"}, 0, False),
        ({}, 0, False),
    ],
)
def test_huge_pages_that_nobody_reserved_are_named_where_an_arm_wants_them(
    settings: dict[str, Any],
    reserved: int,
    lacks: bool,
) -> None:
    sut = SutSpec(image="i", deployment="fake", settings=settings)
    use = Use("plain", sut, ArmSettings(sut=sut, workload_name="w", workload={}))
    host = FakeHost(files={"/proc/meminfo": f"MemTotal: 1 kB\nHugePages_Total: {reserved}\n".encode()})
    wanted = HUGE_PAGES in tuple(PlugIns().required_by(use))
    assert (wanted and HUGE_PAGES.why_not(HostPlan(host, uses=(use,))) is not None) is lacks


@pytest.mark.parametrize(
    ("driver", "problem"),
    [
        ("json-file", None),
        ("none", None),
        ("local", "the engine has no log driver `local`, but journald, syslog"),
        ("journald", "there is no journal for the log driver `journald` (/run/systemd/journal/socket)"),
    ],
)
def test_a_log_driver_that_the_engine_lacks_is_named(driver: Any, problem: str | None) -> None:
    class Listed:
        def info(self) -> dict[str, Any]:
            return {"Plugins": {"Log": ["syslog", "journald"]}}  # Docker does not list `none`

    sut = SutSpec(image="i", deployment="container", log_driver=driver)
    use = Use("boxed", sut, ArmSettings(sut=sut, workload_name="w", workload={}))
    host, engine = FakeHost(answers={("test",): Completed((), 1)}), cast("Any", Listed())
    why = LOG_DRIVERS.why_not(HostPlan(host, uses=(use,), engine=engine))
    assert why is None if problem is None else (why or "").startswith(problem)
