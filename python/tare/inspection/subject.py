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
from tare.sites.reading import answer, as_int, text
from tare.traps.predicate import NONE, Known

PROGRAMS: Mapping[str, str] = {
    "postgres": "postgresql", "mariadbd": "mariadb", "mysqld": "mysql", "redis-server": "redis",
    "valkey-server": "valkey", "mongod": "mongodb", "etcd": "etcd", "influxd": "influxdb", "memcached": "memcached",
    "clickhouse": "clickhouse", "prometheus": "prometheus", "milvus": "milvus", "cockroach": "cockroachdb",
}  # fmt: skip
"""Name of a program's file → the database that it is."""
_LAUNCHER = "CliToolLauncher"
"""Class of the JVM that starts Elasticsearch's and stays its parent."""
_JAVA: Mapping[str, str] = {
    "org.apache.cassandra": "cassandra", "org.elasticsearch": "elasticsearch", "org.opensearch": "opensearch",
    "kafka.Kafka": "kafka",
}  # fmt: skip
KNOWN = frozenset({*PROGRAMS.values(), *_JAVA.values()})
"""Databases that a program's name, or a JVM's main class, tells."""
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_FINGERPRINT = re.compile(r"://([0-9a-f]{64})$")
SHIMS = ("containerd-shim", "conmon")
"""Beginnings of the names of programs that engines leave as the parent of a container's first process."""
_PROBE_S = 10.0
"""Default of `periodSeconds`."""


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
    command: tuple[str, ...] = ()
    """Command of its container; empty if nobody told."""
    specified: Mapping[str, Known] = field(default_factory=dict)
    """Facts that a pod's specification tells."""


def subjects_of(host: Host, target: str, engines: Mapping[str, Engine]) -> tuple[Subject, ...]:
    """Find what the user names. Raises `StudyError` if nothing has that name, `EnvironmentLacks` if it ended.

    The number of a process is that process; `NAME.service` a unit of systemd; anything else a container of one of
    the engines, which may hold several servers.
    """
    if target.isdecimal() and text(host, f"/proc/{target}/cgroup") is not None:
        return (of_process(host, int(target), engines),)
    if target.endswith(".service"):
        shown = answer(host, ["systemctl", "show", "--property=MainPID", "--value", "--", target]).strip()
        if shown.isdecimal() and shown != "0":
            return (of_process(host, int(shown), engines, name=target),)
    for name, engine in engines.items():
        try:
            attrs = engine.containers.get(target).attrs
        except NotFound:
            continue
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(f"{name} cannot be asked about {target!r}: {error}") from error
        version = _version(engine)
        return tuple(replace(each, engine_version=version) for each in of_container(host, name, attrs))
    if target.isdecimal():
        raise StudyError(
            f"there is no process {target} here, and no container of that name",
            hint="`pgrep -a postgres` lists some",
        )
    if target.endswith(".service"):
        raise StudyError(f"no running service {target!r} here", hint="`systemctl list-units --type=service`")
    raise StudyError(
        f"no container {target!r} (asked: {', '.join(engines) or 'no engine, as none answers'})",
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
        version = _version(engine)
        for container in engine.containers.list():
            try:
                inside = of_container(host, name, container.attrs)
            except EnvironmentLacks:
                continue  # ended since it was listed
            yield from (replace(each, engine_version=version) for each in inside)


def of_container(host: Host, engine: str, attrs: Mapping[str, Any]) -> tuple[Subject, ...]:
    """The servers of a container: known databases among its processes, else its first process."""
    state = attrs.get("State") or {}
    pid, name = int(state.get("Pid") or 0), str(attrs.get("Name") or attrs.get("Id", "")).lstrip("/")
    if not pid:
        why = ": the kernel killed it for lack of memory" if state.get("OOMKilled") else ""
        status = f"{state.get('Status') or 'not running'}, exit code {state.get('ExitCode', 'unknown')}"
        raise EnvironmentLacks(f"container {name!r} does not run ({status}){why}", hint="start it")
    if not _is_of(host, pid, str(attrs.get("Id") or "")):
        raise EnvironmentLacks(
            f"container {name!r} has no process on this host", hint="look on the host of its engine"
        )
    return tuple(
        Subject(
            name, server, placed_of(host, server, contained=True), engine, database, attrs, command=_command(attrs)
        )
        for server, database in servers_of(host, members(host, pid) or [pid], pid)
    )


def _is_of(host: Host, pid: int, identity: str) -> bool:
    """Whether a process is of a container. What an engine of another host names may be any process here."""
    if not identity or text(host, f"/proc/{pid}/stat") is None:
        return False
    return any(identity in (text(host, f"/proc/{pid}/{name}") or "") for name in ("cgroup", "mountinfo"))


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
        known = Subject(called or f"process {pid}", pid, placed, engine, database, attrs, command=_command(attrs))
        return replace(known, engine_version=_version(client))
    engine = "containerd" if "containerd" in groups or "kubepods" in groups else "unknown"
    return Subject(
        name or f"process {pid}", pid, placed_of(host, pid, contained=True), engine, database, unasked=why
    )


def of_pod(host: Host, pod: Mapping[str, Any]) -> Iterator[Subject]:
    """The containers of a pod that run on this host, by their control groups. `pod`: as the API server has it."""
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    specs = {each["name"]: each for each in (pod.get("spec") or {}).get("containers") or ()}
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        identity = _FINGERPRINT.search(status.get("containerID") or "")
        if identity is None:
            continue
        held = answer(host, ["grep", "-lF", identity[1], *_cgroup_files(host)], partial=True).split()
        pids = sorted(int(path.split("/")[2]) for path in held)
        spec = specs.get(status["name"]) or {}
        if pids:
            for server, database in servers_of(host, pids, pids[0]):
                yield Subject(
                    f"{name}:{status['name']}",
                    server,
                    "pod",
                    "containerd",
                    database,
                    unasked="only the runtime of its pod knows",
                    command=(*(spec.get("command") or ()), *(spec.get("args") or ())),
                    specified=_specified(spec),
                )


def _command(attrs: Mapping[str, Any]) -> tuple[str, ...]:
    return (attrs.get("Path") or "", *(attrs.get("Args") or ()))


def _specified(spec: Mapping[str, Any]) -> Mapping[str, Known]:
    """Facts of a container's specification: its image's tag, and how often a probe starts a program in it."""
    if not spec:
        return {}
    probes = [spec.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness")]
    every = [float(probe.get("periodSeconds") or _PROBE_S) for probe in probes if "exec" in probe]
    tag = tag_of(spec.get("image"))
    return {"health.interval_s": min(every, default=NONE), **({} if tag is None else {"image.tag": tag})}


def tag_of(image: str | None, ident: str | None = None) -> str | None:
    """Tag of a reference; `latest` if it has none, `none` for a digest or (the beginning of) the image's own id."""
    if not image:
        return None
    if "@" in image or image.startswith("sha256:") or (ident or "").removeprefix("sha256:").startswith(image):
        return NONE
    name, mid, tag = image.rpartition("/")[2].partition(":")
    return tag if mid else "latest" if name else None


def _cgroup_files(host: Host) -> Sequence[str]:
    listed = answer(host, ["ls", "-1", "--", "/proc"]).split()
    return [f"/proc/{pid}/cgroup" for pid in listed if pid.isdecimal()]


def servers_of(host: Host, pids: Sequence[int], first: int) -> tuple[tuple[int, str], ...]:
    """The servers among processes of one container, and what each is; a server's own workers are none."""
    named = {pid: name for pid in sorted(pids) if (name := database_of(host, pid)) in KNOWN}
    servers = tuple((pid, name) for pid, name in named.items() if named.get(parent_of(host, pid) or 0) != name)
    return servers or ((first, database_of(host, first)),)


def parent_of(host: Host, pid: int) -> int | None:
    """The parent of a process; `None` if it has gone."""
    fields = (text(host, f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return as_int(fields[1]) if len(fields) > 1 else None


def database_of(host: Host, pid: int) -> str:
    """What a program is, by its name and, for a JVM, its main class; else the program's name."""
    name = text(host, f"/proc/{pid}/comm") or "unknown"
    words = (text(host, f"/proc/{pid}/cmdline") or "").split("\0")
    if name == "java" or words[0].endswith("/java"):
        if any(_LAUNCHER in word for word in words):
            return "java"
        return next((known for main, known in _JAVA.items() if any(main in word for word in words)), "java")
    program = words[0].split(" ")[0].rpartition("/")[2].removesuffix(":")
    return PROGRAMS.get(name) or PROGRAMS.get(program) or name


def placed_of(host: Host, pid: int, *, contained: bool) -> str:
    """`pod` for a process in kubelet's control groups, else `container` or `process`."""
    if "kubepods" in (text(host, f"/proc/{pid}/cgroup") or ""):
        return "pod"
    return "container" if contained else "process"
