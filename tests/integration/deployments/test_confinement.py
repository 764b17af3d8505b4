"""What a container may not do is what its task asks for, as the kernel tells of its process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.deployments import Confinement, Deployment, Instance, Limits, Task
from tare.errors import EnvironmentLacks, RunFailed
from tare.record.observation import Observation
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
NONE = "0000000000000000"


def seen(container: Deployment, make_task: MakeTask, started: Started, name: str, **asked: object) -> Observation:
    confinement = Confinement(**asked)  # type: ignore[arg-type]  # as a study writes it
    task = make_task("sleep", "1000", name=name, confinement=confinement)
    return container.observe(started(container, task))


def test_each_confinement_is_in_force(
    container: Deployment, make_task: MakeTask, started: Started, tmp_path: Path
) -> None:
    usual = seen(container, make_task, started, "usual")
    assert (usual.seccomp, usual.no_new_privileges) == ("2", "0")
    free = seen(container, make_task, started, "free", seccomp="unconfined", capabilities="all")
    assert free.seccomp == "0"
    assert int(free.capabilities or "0", 16) > int(usual.capabilities or "0", 16)
    tight = seen(container, make_task, started, "tight", capabilities="none", no_new_privileges=True)
    assert (tight.capabilities, tight.no_new_privileges) == (NONE, "1")
    profile = tmp_path / "own.json"
    profile.write_text(
        json.dumps(
            {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}
        )
    )
    own = Confinement(seccomp=str(profile))
    instance = started(container, make_task("sleep", "1000", name="own", confinement=own))
    assert container.observe(instance).seccomp == "2"
    assert container.exec(instance, ["mkdir", "/tmp/x"], timeout_s=10).code != 0


def test_a_profile_that_is_not_there_and_a_runtime_that_nobody_knows_are_told(
    container: Deployment, make_task: MakeTask
) -> None:
    lost = Confinement(seccomp="/nowhere/own.json")
    with pytest.raises(EnvironmentLacks, match=r"/nowhere/own\.json is missing"):
        container.start(make_task("true", name="lost", confinement=lost))
    with pytest.raises(RunFailed, match=r"(?i)unknown (or invalid )?runtime .*no-such"):
        container.start(make_task("true", name="odd", runtime="no-such"))


@pytest.mark.parametrize("place", ["bare", "container"])
def test_a_weight_is_the_same_in_every_deployment(
    place: str, bare: Deployment, container: Deployment, make_task: MakeTask, started: Started
) -> None:
    deployment = {"bare": bare, "container": container}[place]
    observation = deployment.observe(started(deployment, make_task("sleep", "1000", limits=Limits(cpu_weight=25))))
    assert observation.cpu_weight in (25, 256)  # as control groups v2 and v1 have it


def test_sysctls_are_in_force_in_the_container_s_own_network_namespace_only(
    container: Deployment, bare: Deployment, make_task: MakeTask, started: Started
) -> None:
    given = {"net.core.somaxconn": "77", "net.ipv4.tcp_rmem": "4096 8192 65536"}
    task = make_task("sleep", "1000", name="own", network=NetworkKind.BRIDGE, sysctls=given)
    inside = container.observe(started(container, task)).network_settings or {}
    assert {name: inside.get(name) for name in given} == given
    outside = bare.observe(started(bare, make_task("sleep", "1000", name="host"))).network_settings or {}
    assert outside["net.core.somaxconn"] == Path("/proc/sys/net/core/somaxconn").read_text().strip() != "77"
