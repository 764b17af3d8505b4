"""What a user names is found as the server's process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound
from tests.unit.inspection.machine import ATTRS, IDENT, PID, machine

from tare.errors import EnvironmentLacks, StudyError
from tare.inspection.subject import database_of, every_container, of_pod, servers_of, subjects_of
from tare.sites import Completed


class Containers:
    """Containers of an engine by name and id."""

    def get(self, name: str) -> SimpleNamespace:
        if name not in {"db", IDENT}:
            raise NotFound(name)
        return SimpleNamespace(attrs=ATTRS)

    def list(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(attrs=ATTRS), SimpleNamespace(attrs={**ATTRS, "State": {"Pid": 0}})]


ENGINES: Any = {"docker": SimpleNamespace(containers=Containers(), version=lambda: {"Version": "25.0.4"})}


def test_a_container_is_found_by_name_and_by_a_process_in_it() -> None:
    by_name, by_process = (subjects_of(machine(), target, ENGINES)[0] for target in ("db", str(PID)))
    for found_subject in (by_name, by_process):
        assert (found_subject.name, found_subject.pid, found_subject.placed) == ("db", PID, "container")
        assert (found_subject.engine, found_subject.database) == ("docker", "postgresql")
        assert found_subject.engine_version == "25.0.4"
    (alone,) = subjects_of(machine(), str(PID), {})
    assert (alone.placed, alone.attrs) == ("container", {})
    assert alone.unasked is not None


def test_a_process_without_a_container_is_a_process() -> None:
    host = machine(**{f"__proc__{PID}__cgroup": "0::/system.slice/redis.service\n"})
    host.answers["systemctl",] = Completed(("systemctl",), 0, f"{PID}\n".encode())
    (service,) = subjects_of(host, "redis.service", ENGINES)
    assert (service.name, service.placed, service.engine) == ("redis.service", "process", "none")


def test_what_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(StudyError, match=r"no container 'other' \(asked: docker\)"):
        subjects_of(machine(), "other", ENGINES)
    with pytest.raises(StudyError, match="no process 99"):
        subjects_of(machine(), "99", ENGINES)
    with pytest.raises(StudyError, match="no running service"):
        subjects_of(machine(), "x.service", ENGINES)


def test_all_containers_are_those_that_run() -> None:
    assert [each.name for each in every_container(machine(), ENGINES)] == ["db"]
    with pytest.raises(EnvironmentLacks):
        subjects_of(machine(**{f"__proc__{PID}__stat": ""}), "db", ENGINES)


def test_a_process_that_is_not_of_the_container_is_not_taken_for_it() -> None:
    elsewhere = machine(**{f"__proc__{PID}__cgroup": "0::/user.slice\n"})
    with pytest.raises(EnvironmentLacks, match="has no process on this host"):
        subjects_of(elsewhere, "db", ENGINES)
    ended: Any = {**ATTRS, "State": {"Pid": 0, "Status": "exited", "ExitCode": 137, "OOMKilled": True}}
    engines: Any = {
        "docker": SimpleNamespace(containers=SimpleNamespace(get=lambda _: SimpleNamespace(attrs=ended)))
    }
    with pytest.raises(
        EnvironmentLacks, match=r"\(exited, exit code 137\): the kernel killed it for lack of memory"
    ):
        subjects_of(machine(), "db", {"docker": SimpleNamespace(**vars(engines["docker"]), version=dict)})


def test_a_container_may_have_a_number_for_a_name() -> None:
    engines: Any = {
        "docker": SimpleNamespace(
            containers=SimpleNamespace(get=lambda _: SimpleNamespace(attrs=ATTRS)), version=dict
        )
    }
    (container,) = subjects_of(machine(), "508871482", engines)
    assert container.pid == PID


def test_every_server_of_a_container_is_found_and_their_workers_are_not() -> None:
    processes = {10: ("sh", 1), 11: ("redis-server", 10), 12: ("redis-server", 10), 13: ("redis-server", 12)}
    files = {
        f"__proc__{pid}__{name}": value
        for pid, (program, parent) in processes.items()
        for name, value in (("comm", program), ("stat", f"{pid} ({program}) S {parent} 0"))
    }
    assert servers_of(machine(**files), list(processes), 10) == ((11, "redis"), (12, "redis"))
    assert servers_of(machine(**files), [10], 10) == ((10, "sh"),)


@pytest.mark.parametrize(
    ("program", "command", "expected"),
    [
        ("postgres", "postgres: walwriter", "postgresql"),
        ("redis-server", "redis-server *:6379", "redis"),
        ("java", "/usr/bin/java -cp x org.apache.cassandra.service.CassandraDaemon", "cassandra"),
        ("java", "/usr/bin/java -jar x.jar", "java"),
        ("nginx", "nginx: master process", "nginx"),
    ],
)
def test_a_program_is_known_by_its_name(program: str, command: str, expected: str) -> None:
    assert database_of(machine(program=program, command=command), PID) == expected


def test_the_containers_of_a_pod_are_found_by_their_control_groups() -> None:
    host = machine(**{f"__proc__{PID}__cgroup": f"0::/kubepods/burstable/pod1/{IDENT}\n"})
    host.answers["ls",] = Completed(("ls",), 0, f"1\n{PID}\nself\n".encode())
    # grep fails as well, as the process of `ls` has gone
    host.answers["grep",] = Completed(("grep",), 2, f"/proc/{PID}/cgroup\n".encode())
    status = {"containerStatuses": [{"name": "main", "containerID": f"containerd://{IDENT}"}, {"name": "waiting"}]}
    probe = {"exec": {"command": ["redis-cli", "ping"]}, "periodSeconds": 5}
    spec = {"name": "main", "image": "redis", "args": ["--maxmemory", "1gb"], "readinessProbe": probe}
    pod = {"metadata": {"namespace": "ns", "name": "db-0"}, "spec": {"containers": [spec]}, "status": status}
    (only,) = of_pod(host, pod)
    assert only.command == ("--maxmemory", "1gb")
    assert only.specified == {"health.interval_s": 5.0, "image.tag": "latest"}
    assert (only.name, only.placed, only.pid) == ("ns/db-0:main", "pod", PID)
