"""What to look at: a container, pod, service of systemd or process ID, as the server's process on this host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from tare.deployments.network.path import members
from tare.errors import EnvironmentLacks, StudyError
from tare.sites import Host
from tare.sites.reading import answer, text

PROGRAMS: Mapping[str, str] = {
    "postgres": "postgresql", "mariadbd": "mariadb", "mysqld": "mysql", "redis-server": "redis",
    "valkey-server": "valkey", "mongod": "mongodb", "etcd": "etcd", "influxd": "influxdb", "memcached": "memcached",
    "clickhouse": "clickhouse", "prometheus": "prometheus", "milvus": "milvus", "cockroach": "cockroachdb",
}  # fmt: skip
"""Name of a program's file → the database that it is."""
_JAVA: Mapping[str, str] = {
    "org.apache.cassandra": "cassandra", "org.elasticsearch": "elasticsearch", "org.opensearch": "opensearch",
    "kafka.Kafka": "kafka",
}  # fmt: skip
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_FINGERPRINT = re.compile(r"://([0-9a-f]{64})$")
_CALL_S = 10.0


class Engine(Protocol):
    """The part of an engine's client that is used: it only asks."""

    @property
    def containers(self) -> Any:
        """Its containers, as the `docker` package has them."""
        ...

    def version(self) -> Mapping[str, Any]:
        """Its `Version`, and others."""
        ...


@dataclass(frozen=True)
class Subject:
    """A server. `attrs`: what its engine says of its container; empty if no engine was asked or knows it."""

    name: str
    pid: int
    placed: str
    engine: str
    database: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    unasked: str | None = None
    """Why no engine could be asked about its container."""
    engine_version: str | None = None


def subjects_of(host: Host, target: str, engines: Mapping[str, Engine]) -> Subject:
    """Find what the user names. Raises `StudyError` if nothing has that name, `EnvironmentLacks` if it ended.

    A number is a process ID; `NAME.service` a unit of systemd; anything else a container of one of the engines.
    """
    if target.isdecimal():
        return of_process(host, int(target), engines)
    if target.endswith(".service"):
        shown = answer(host, ["systemctl", "show", "--property=MainPID", "--value", "--", target]).strip()
        if not shown.isdecimal() or shown == "0":
            raise StudyError(f"no running service {target!r} here", hint="`systemctl list-units --type=service`")
        return of_process(host, int(shown), engines, name=target)
    for name, engine in engines.items():
        try:
            attrs = engine.containers.get(target).attrs
        except NotFound:
            continue
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(f"{name} cannot be asked about {target!r}: {error}") from error
        return replace(of_container(host, name, attrs), engine_version=_version(engine))
    asked = " or ".join(engines) or "no engine, since none answers"
    raise StudyError(
        f"no container {target!r} ({asked} was asked)",
        hint="give a container's name, a process ID, NAME.service, or NAMESPACE/POD with --kubeconfig",
    )


def _version(engine: Engine) -> str | None:
    try:
        return str(engine.version()["Version"])
    except (DockerException, RequestException, KeyError):
        return None


def every_container(host: Host, engines: Mapping[str, Engine]) -> Iterator[Subject]:
    """All running containers of the engines."""
    for name, engine in engines.items():
        for container in engine.containers.list():
            try:
                yield replace(of_container(host, name, container.attrs), engine_version=_version(engine))
            except EnvironmentLacks:
                continue  # ended since it was listed


def of_container(host: Host, engine: str, attrs: Mapping[str, Any]) -> Subject:
    """The server of a container: a known database among its processes, else its first process."""
    state = attrs.get("State") or {}
    pid, name = int(state.get("Pid") or 0), str(attrs.get("Name") or attrs.get("Id", "")).lstrip("/")
    if not pid or text(host, f"/proc/{pid}/stat") is None:
        why = ": the kernel killed it for lack of memory" if state.get("OOMKilled") else ""
        raise EnvironmentLacks(
            f"container {name!r} does not run on this host{why}", hint="start it, or look on its host"
        )
    server, database = server_of(host, members(host, pid) or [pid], pid)
    return Subject(name, server, placed_of(host, server, contained=True), engine, database, attrs)


def of_process(host: Host, pid: int, engines: Mapping[str, Engine], *, name: str | None = None) -> Subject:
    """A process of this host, with its container if it is in one that an engine knows."""
    groups = text(host, f"/proc/{pid}/cgroup")
    if groups is None:
        raise StudyError(f"there is no process {pid} here", hint="`pgrep -a postgres` lists some")
    database = database_of(host, pid)
    identity = _ID.search(groups)
    if identity is None:
        return Subject(name or f"process {pid}", pid, "process", "none", database)
    why = "no engine that answers knows its container"
    for engine, client in engines.items():
        try:
            attrs = client.containers.get(identity[0]).attrs
        except (DockerException, RequestException):
            continue
        called = str(attrs.get("Name") or "").lstrip("/")
        placed = placed_of(host, pid, contained=True)
        known = Subject(called or f"process {pid}", pid, placed, engine, database, attrs)
        return replace(known, engine_version=_version(client))
    engine = "containerd" if "containerd" in groups or "kubepods" in groups else "unknown"
    return Subject(
        name or f"process {pid}", pid, placed_of(host, pid, contained=True), engine, database, unasked=why
    )


def of_pod(host: Host, pod: Mapping[str, Any]) -> Iterator[Subject]:
    """The containers of a pod that run on this host, by their control groups. `pod`: as the API server has it."""
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        identity = _FINGERPRINT.search(status.get("containerID") or "")
        if identity is None:
            continue
        held = answer(host, ["grep", "-lE", f"{identity[1]}", *_cgroup_files(host)]).split()
        pids = sorted(int(path.split("/")[2]) for path in held)
        if pids:
            server, database = server_of(host, pids, pids[0])
            yield Subject(f"{name}:{status['name']}", server, "pod", "containerd", database, unasked="it is a pod")


def _cgroup_files(host: Host) -> Sequence[str]:
    listed = answer(host, ["ls", "-1", "--", "/proc"]).split()
    return [f"/proc/{pid}/cgroup" for pid in listed if pid.isdecimal()]


def server_of(host: Host, pids: Sequence[int], first: int) -> tuple[int, str]:
    """The server among processes of one container, and what it is; the parent comes before its workers."""
    known = [(pid, database_of(host, pid)) for pid in sorted(pids)]
    named = [(pid, name) for pid, name in known if name in {*PROGRAMS.values(), *_JAVA.values()}]
    return named[0] if named else (first, database_of(host, first))


def database_of(host: Host, pid: int) -> str:
    """What a program is, by its name and, for a JVM, its main class; else the program's name."""
    name = text(host, f"/proc/{pid}/comm") or "unknown"
    words = (text(host, f"/proc/{pid}/cmdline") or "").split("\0")
    if name == "java" or words[0].endswith("/java"):
        return next((known for main, known in _JAVA.items() if any(main in word for word in words)), "java")
    program = words[0].split(" ")[0].rpartition("/")[2].removesuffix(":")
    return PROGRAMS.get(name) or PROGRAMS.get(program) or name


def placed_of(host: Host, pid: int, *, contained: bool) -> str:
    """`pod` for a process in kubelet's control groups, else `container` or `process`."""
    if "kubepods" in (text(host, f"/proc/{pid}/cgroup") or ""):
        return "pod"
    return "container" if contained else "process"
