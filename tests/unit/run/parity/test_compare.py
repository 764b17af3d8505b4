"""Runs may differ in what the study names, and in nothing else; each difference is told by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tare.errors import NotComparable
from tare.record.network_path import Hop, NetworkPath
from tare.record.observation import Parity
from tare.record.run_record import Outcome, RunRecord
from tare.run.events import RunEnded
from tare.run.execute import execute
from tare.run.parity.compare import KnownVariables, changed_during, differences
from tare.run.parity.declared import promised_hops, undeclared
from tare.run.parity.properties import parent_cgroup
from tare.run.parity.references import References, until_refused
from tare.run.usage.cpu import both_clocks
from tare.study.model import Arm, ArmSettings, ClientSpec, LimitsSpec, Study, SutSpec
from tare.study.protocol_spec import InterleaveSpec
from tare.study.values import CgroupPlace, NetworkKind

TOKEN = "0123456789ab"
DIGEST = "sha256:" + "ab" * 32


def settings(deployment: str = "container", **sut: Any) -> ArmSettings:
    return ArmSettings(
        sut=SutSpec(image="mariadb", deployment=deployment, database="mariadb", **sut),
        client=ClientSpec(image="sysbench", deployment="bare"),
        workload_name="sysbench",
        workload={"measure_s": 4.0},
    )


def study(varies: tuple[str, ...] = ("sut.deployment", "sut.network")) -> Study:
    arms = tuple(
        Arm(name=name, levels={"path": name}, settings=settings(deployment))
        for name, deployment in (("bare", "bare"), ("host", "container"), ("bridge", "container"))
    )
    return Study(
        name="paths", scale="full", question="?", source=None, arms=arms, baseline="bare",
        factors={"path": ("bare", "host", "bridge")}, varies={"path": varies}, protocol=InterleaveSpec(),
        published=(), deviations=(), text="",
    )  # fmt: skip


def observation(**changes: Any) -> dict[str, Any]:
    seen = {
        "cgroups": {"cpu,cpuacct": f"/tare/{TOKEN}/x", "memory": f"/tare/{TOKEN}/x", "name=systemd": "/elsewhere"},
        "cpu_weight": 1024,
        "cpus_allowed": "0-1",
        "cpu_quota": None,
        "memory_bytes": None,
        "limits": {"Max open files": "65536 65536"},
        "seccomp": "0",
        "speculation": {},
        "namespaces": {"mnt": "1"},
        "binary_digest": DIGEST,
        "scheduler": "other",
        "oom_score_adj": 0,
        "mounts": {"/data": "ext4 254:0"},
        "environment": {"HOSTNAME": "x", "PATH": "/bin"},
    }
    return {**seen, **changes}


def parity(**changes: Any) -> Parity:
    return Parity.model_validate({"sut": observation(**changes), "client": observation()})


def record(arm: str, *, sut: Mapping[str, Any] | None = None, ok: bool = True, **changes: Any) -> RunRecord:
    deployment = "bare" if arm == "bare" else "container"
    fields: dict[str, Any] = {
        "run_id": f"b01-1-{arm}", "attempt": 1, "study": "paths", "scale": "full", "plan_digest": "0", "block": 1,
        "position": 0, "index": 0, "arm": arm, "levels": {"path": arm},
        "settings": settings(deployment).model_dump(mode="json"), "seed": 1, "phases": (),
        "host": {"thp": "madvise", "load_1min": 3.0}, "engine": None,
        "images": {"sut": {"digest": "tree-1"}, "client": {"digest": "tree-2"}},
        "effective": {"innodb_buffer_pool_size": "134217728", "port": "1"},
        "parity": parity(**(sut or {})),
        "path": NetworkPath(Hop.LOOPBACK), "measurement": None, "raw": (), "outcome": Outcome(ok=ok),
    }  # fmt: skip
    return RunRecord(**{**fields, **changes})


SERVER = KnownVariables(per_run=frozenset({"port"}))


def found(one: RunRecord, other: RunRecord, whole: Study | None = None) -> list[str]:
    return [str(each) for each in differences(whole or study(), one, other, SERVER)]


def test_runs_that_differ_in_their_own_names_and_ports_only_are_alike() -> None:
    other = {"cgroups": {"cpu,cpuacct": "/tare/ba9876543210/y", "memory": "/tare/ba9876543210/y"}, "seccomp": "2"}
    later = record("bridge", sut={**other, "namespaces": {"mnt": "2"}}, path=NetworkPath(Hop.BRIDGE),
                   effective={"innodb_buffer_pool_size": "134217728", "port": "2"},
                   host={"thp": "madvise", "load_1min": 9.0})  # fmt: skip
    assert found(record("bare"), later) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cpu_weight": 512}, "SUT: cpu weight: 1024 in bare, 512 in bridge"),
        ({"cgroups": {"cpu": "/", "memory": "/"}}, "SUT: parent cgroup: /tare/RUN in bare, / in bridge"),
        ({"cpus_allowed": "0"}, "SUT: CPU set: 0-1 in bare, 0 in bridge"),
        ({"cpu_quota": 0.5}, "SUT: CPU quota: none in bare, 0.5 in bridge"),
        ({"memory_bytes": 1 << 30}, "SUT: memory limit: none in bare, 1073741824 in bridge"),
        (
            {"limits": {"Max open files": "1024 1024"}},
            "SUT: ulimit 'Max open files': 65536 65536 in bare, 1024 1024 in bridge",
        ),
        (
            {"mounts": {"/data": "overlay 0:40"}},
            "SUT: file system of /data: ext4 254:0 in bare, overlay in bridge",
        ),
        ({"mounts": {}}, "SUT: file system of /data: ext4 254:0 in bare, not there in bridge"),
        ({"binary_digest": "sha256:cd"}, f"SUT: binary digest: {DIGEST} in bare, sha256:cd in bridge"),
        ({"scheduler": "batch"}, "SUT: scheduler: other in bare, batch in bridge"),
        ({"oom_score_adj": -500}, "SUT: oom_score_adj: 0 in bare, -500 in bridge"),
        ({"environment": {"PATH": "/x"}}, "SUT: environment variable PATH: /bin in bare, /x in bridge"),
        ({"environment": {}}, "SUT: environment variable PATH: /bin in bare, not there in bridge"),
        (
            {"environment": {"PATH": "/bin", "MALLOC_ARENA_MAX": "1"}},
            "SUT: environment variable MALLOC_ARENA_MAX: not there in bare, 1 in bridge",
        ),
    ],
)
def test_a_difference_around_the_sut_is_named(changes: dict[str, Any], told: str) -> None:
    assert found(record("bare"), record("bridge", sut=changes)) == [told]


@pytest.mark.parametrize(
    "environment",
    [None, {"HOSTNAME": "y", "PATH": "/bin"}, {"PATH": "/bin", "TERM": "xterm", "container": "podman"}],
)
def test_an_environment_that_is_not_known_and_names_of_place_and_run_are_no_difference(environment: Any) -> None:
    other = record("bridge", sut={"environment": environment})
    assert found(record("bare"), other) == found(other, record("bare")) == []


def test_a_variable_an_image_and_a_fact_of_the_host_are_named() -> None:
    later = record(
        "bridge",
        effective={"innodb_buffer_pool_size": "268435456", "port": "1"},
        images={"sut": {"digest": "tree-3"}, "client": {"digest": "tree-2"}},
        host={"thp": "always"},
    )
    assert found(record("bare"), later) == [
        "SUT: image digest: tree-1 in bare, tree-3 in bridge",
        "variable innodb_buffer_pool_size: 134217728 in bare, 268435456 in bridge",
        "host: transparent huge pages: madvise in bare, always in bridge",
    ]


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("thp", "transparent huge pages"), ("thp_defrag", "transparent huge pages, defragmentation"),
        ("kernel", "kernel"), ("cpu_online", "CPUs online"), ("cpu_idle_driver", "CPU idle driver"),
        ("clocksource", "clock source"),
        ("data_filesystem", "file system of the data path"), ("data_source", "device of the data path"),
        ("data_io_scheduler", "I/O scheduler of the data path"),
    ],
)  # fmt: skip
def test_a_fact_of_the_host_that_decides_a_result_is_named_and_no_factor_excuses_it(fact: str, told: str) -> None:
    one, other = record("bare", host={fact: "this"}), record("bridge", host={fact: "that"})
    every = study(("sut.image", "sut.cgroup", "sut.limits.cpus", "sut.deployment"))
    assert found(one, other, every) == [f"host: {told}: this in bare, that in bridge"]
    assert changed_during(one, record("bare", host={fact: "that"}), SERVER) == (
        f"host: {told}: this before, that afterwards",
    )
    assert found(record("bare", host={}), other, every) == [f"host: {told}: none in bare, that in bridge"]


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("sut.settings.innodb-buffer-pool-size", {"effective": {"innodb_buffer_pool_size": "1", "port": "1"}}),
        ("sut.limits.cpus", {"sut": {"cpus_allowed": "0"}}),
        ("sut.limits.memory", {"sut": {"memory_bytes": 1}}),
        ("sut.cgroup", {"sut": {"cgroups": {"cpu": "/"}, "cpu_weight": None}}),
        (
            "sut.image",
            {
                "images": {"sut": {"digest": "tree-3"}, "client": {"digest": "tree-2"}},
                "sut": {"binary_digest": "x"},
            },
        ),
    ],
)
def test_a_difference_that_a_factor_names_is_none(key: str, changes: dict[str, Any]) -> None:
    assert found(record("bare"), record("bridge", **changes), study((key,))) == []
    assert found(record("bare"), record("bridge", **changes)) != []


def test_what_a_factor_names_must_still_be_alike_in_runs_of_one_arm() -> None:
    first, later = record("bridge"), record("bridge", sut={"cpus_allowed": "0"}, run_id="b02-1-bridge")
    assert found(first, later, study(("sut.limits.cpus",))) == ["SUT: CPU set: 0-1 in bridge, 0 in bridge"]


def test_an_arm_reached_by_two_ways_is_two_arms() -> None:
    first = record("bridge", path=NetworkPath(Hop.DOCKER_PROXY))
    later = record("bridge", path=NetworkPath(Hop.DNAT), run_id="b02-1-bridge")
    assert found(first, later) == [
        "network path: docker-proxy in bridge (b01-1-bridge), dnat in bridge (b02-1-bridge)"
    ]


def test_a_seccomp_filter_is_the_nature_of_a_container_but_not_of_two_containers() -> None:
    assert found(record("bare"), record("bridge", sut={"seccomp": "2"})) == []
    assert found(record("host"), record("bridge", sut={"seccomp": "2"})) == ["SUT: seccomp: 0 in host, 2 in bridge"]


def test_variables_that_the_server_derives_follow_what_is_named() -> None:
    server = KnownVariables(frozenset({"port"}), {"sut.limits.cpus": frozenset({"thread_pool_size"})})
    one, other = (
        record(arm, effective={"thread_pool_size": size}) for arm, size in (("bare", "2"), ("bridge", "1"))
    )
    assert differences(study(("sut.limits.cpus",)), one, other, server) == ()
    assert differences(study(), one, other, server) != ()


@pytest.mark.parametrize("name", ["maxmemory-policy", "storage.wiredTiger.engineConfig.cacheSizeGB"])
def test_a_server_may_spell_its_variables_as_it_likes(name: str) -> None:
    one, other = (record(arm, effective={name: value}) for arm, value in (("bare", "1"), ("bridge", "2")))
    server = KnownVariables(frozenset(), {f"sut.settings.{name}": frozenset({"derived"})})
    assert differences(study((f"sut.settings.{name}",)), one, other, server) == ()
    assert differences(study(), one, other, server) != ()
    one, other = (record(arm, effective={"derived": value}) for arm, value in (("bare", "1"), ("bridge", "2")))
    assert differences(study((f"sut.settings.{name}",)), one, other, server) == ()


def test_a_side_that_was_not_observed_is_missing_and_not_different() -> None:
    assert found(record("bare"), record("bridge", parity=Parity())) == []


def test_what_changes_during_a_run_is_named() -> None:
    before = record("bare")
    assert changed_during(before, before, SERVER) == ()
    after = record("bare", effective={"innodb_buffer_pool_size": "1", "port": "9"})
    assert changed_during(before, after, SERVER) == (
        "variable innodb_buffer_pool_size: 134217728 before, 1 afterwards",
    )


@pytest.mark.parametrize(
    ("cgroups", "parent"),
    [
        ({"": "/tare.slice/tare-0123456789ab.slice/x.scope"}, "/tare.slice/tare-RUN.slice"),
        ({"cpu": "/", "memory": "/", "": "/system.slice/ssh.service"}, "/"),
        ({"": "/tare.slice/tare-0123456789ab.slice/libpod-4f.scope/container"}, "/tare.slice/tare-RUN.slice"),
        ({"cpu": "/a/x", "memory": "/b/x"}, "/a (cpu), /b (memory)"),
        ({}, None),
    ],
)
def test_the_parent_cgroup_is_told_without_the_run_s_name(cgroups: dict[str, str], parent: str | None) -> None:
    assert parent_cgroup(cgroups) == parent


@pytest.mark.parametrize(
    ("placed", "seen", "told"),
    [
        ({"limits": LimitsSpec(cpus="0")}, {}, "SUT: CPU set: 0 declared, 0-1 in force"),
        ({"limits": LimitsSpec(cpus="0,1")}, {}, None),
        ({"limits": LimitsSpec(cpu_quota=0.5)}, {}, "SUT: CPU quota: 0.5 declared, none in force"),
        ({"limits": LimitsSpec(memory="1G")}, {}, "SUT: memory limit: 1073741824 declared, none in force"),
        ({"limits": LimitsSpec(memory="1G")}, {"memory_bytes": (1 << 30) - 4096}, None),
        (
            {"limits": LimitsSpec(memory="1G")},
            {"memory_bytes": (1 << 30) - 65536},
            "SUT: memory limit: 1073741824 declared, 1073676288 in force",
        ),
        ({"limits": LimitsSpec(cpu_quota=0.33333)}, {"cpu_quota": 0.3333}, None),
        (
            {"limits": LimitsSpec(cpu_quota=0.5)},
            {"cpu_quota": 0.501},
            "SUT: CPU quota: 0.5 declared, 0.501 in force",
        ),
        ({}, {"cpu_quota": 1.5}, "SUT: CPU quota: none declared, 1.5 in force"),
        ({"limits": LimitsSpec(disk_iops=500)}, {"disk_iops": 500}, None),
        ({"limits": LimitsSpec(disk_iops=500)}, {}, "SUT: disk operations: 500 declared, none in force"),
        ({}, {"disk_iops": 200}, "SUT: disk operations: no limit declared, 200 in force"),
        (
            {},
            {"cgroups": {"cpu": "/", "memory": "/"}},
            "SUT: parent cgroup: cgroup run declared, / in force",
        ),
        ({"cgroup": CgroupPlace.ROOT}, {}, "SUT: parent cgroup: cgroup root declared, /tare/RUN in force"),
    ],
)
def test_what_is_not_as_declared_is_named(placed: dict[str, Any], seen: dict[str, Any], told: str | None) -> None:
    assert undeclared(settings("bare", **placed), parity(**seen), None, TOKEN) == (() if told is None else (told,))


def test_a_path_other_than_the_network_s_is_named_with_what_was_promised() -> None:
    placed = settings(network=NetworkKind.BRIDGE)
    assert undeclared(placed, parity(), NetworkPath(Hop.BRIDGE), TOKEN) == ()
    (told,) = undeclared(placed, parity(), NetworkPath(Hop.DOCKER_PROXY), TOKEN)
    assert told == "network path: network bridge promises bridge, the connections take docker-proxy"


def test_connections_that_go_several_ways_at_once_are_refused() -> None:
    placed = settings(network=NetworkKind.PUBLISHED_LOOPBACK)
    (told,) = undeclared(placed, parity(), NetworkPath(connections=8), TOKEN)
    assert told == "network path: the client's 8 connections take several paths, not only dnat or docker-proxy"
    assert undeclared(placed, parity(), NetworkPath(connections=0), TOKEN) == ()


def test_a_published_port_may_be_carried_by_either() -> None:
    assert promised_hops(NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.HOST) == {Hop.DOCKER_PROXY, Hop.DNAT}
    assert promised_hops(NetworkKind.BRIDGE, NetworkKind.SHARED) == {Hop.LOOPBACK}


def test_the_baseline_s_first_run_is_held_against_the_arms_before_it() -> None:
    references = References([record("bridge", sut={"cpu_weight": 512})])
    assert [str(one) for one in references.differences(study(), record("bare"), SERVER)] == [
        "SUT: cpu weight: 512 in bridge, 1024 in bare"
    ]


def test_a_failed_run_is_no_reference() -> None:
    references = References([record("bare", sut={"cpu_weight": 512}, ok=False)])
    assert references.differences(study(), record("bridge"), SERVER) == ()


def test_an_arm_with_another_variable_ends_the_study_after_one_refused_attempt(rig: Any, plans: Any) -> None:
    plan = plans(arms=("plain", "slow"), retries=2, blocks=2, warmup_s=0.1)
    slow = plan.study.arms[1]
    other = slow.settings.sut.model_copy(update={"settings": {"delay_ms": 2}})
    arms = list(plan.study.arms)
    arms[1] = slow.model_copy(update={"settings": slow.settings.model_copy(update={"sut": other})})
    plan = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": tuple(arms)})})
    kept: list[RunRecord] = []
    with pytest.raises(NotComparable, match="variable delay_ms: ") as ended:
        _keep(until_refused(iter_runs(rig, plan), rig.events.append), kept)
    assert [one.outcome.ok for one in kept[:-1]] == [True] * (len(kept) - 1)
    assert kept[-1].outcome.refused
    assert kept[-1].outcome.failed_in == "warm-up"
    assert kept[-1].attempt == 1
    assert kept[-1].measurement is None
    assert isinstance(rig.events[-1], RunEnded)
    assert ended.value.exit_code == 5
    assert rig.leftovers == []


def test_a_path_that_cannot_be_proved_is_looked_for_again_and_makes_no_good_run(rig: Any, plans: Any) -> None:
    looks = []

    def unmatched(server: Any, client: Any, host: Any) -> NetworkPath:
        looks.append(client)
        return NetworkPath()

    rig.swap(observe_path=unmatched)
    (one, *_) = rig.execute(plans(warmup_s=0.1))
    assert (one.outcome.ok, one.outcome.failed_in) == (False, "measure")
    assert "the network path could not be observed: the connections could not be matched" in str(one.outcome.reason)
    assert len({client.task.name for client in looks}) == 2


def test_a_good_run_tells_the_cpu_time_of_its_measure_phase(rig: Any, plans: Any) -> None:
    (one, *_) = rig.execute(plans())
    assert one.usage.monotonic_s == pytest.approx(one.usage.wall_s, abs=0.05)
    assert set(one.usage.machine) >= {"user", "idle", "steal"}
    assert one.usage.proxy_cpu_s is None
    assert one.parity.sut_after is not None


def test_both_clocks_are_read_without_the_pause_that_fell_between_them() -> None:
    class Paused:
        """A machine that stands still for a second just after the first reading of the wall clock."""

        now, paused = 100.0, False

        def monotonic(self) -> float:
            return self.now

        def wall(self) -> float:
            told, self.now, self.paused = 1000.0 + self.now, self.now + (not self.paused), True
            return told

        def sleep(self, seconds: float) -> None:
            raise AssertionError(seconds)

    wall, monotonic = both_clocks(Paused())
    assert wall - monotonic == 1000.0


def iter_runs(rig: Any, plan: Any) -> Any:
    return execute(plan, rig.machine, rig.destination(), rig.events.append)


def _keep(records: Iterable[tuple[RunRecord, ...]], into: list[RunRecord]) -> None:
    for together in records:
        into.extend(together)
