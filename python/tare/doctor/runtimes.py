"""Which engines and OCI runtimes work on this machine: a program is started with each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.deployments.container.once import in_container, tree
from tare.deployments.container.rootless import NETWORKS, as_user
from tare.deployments.containerd.ctr import SOCKETS
from tare.deployments.rlimits import process_ceilings
from tare.doctor import Line, missing, ok
from tare.errors import EnvironmentLacks, RunFailed, TareError, TimedOut
from tare.sites import Host
from tare.sites.binaries import PROBE, find
from tare.sites.engine import engine_facts
from tare.sites.engines import ROOTLESS, address_of, connect_to, service_at, why_no_user_ranges
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

RUNTIMES = ("runc", "crun", "youki", "runsc")
_OPTIONS = {"runsc": (("--network=host",),)}
"""Options of gVisor, which takes any network namespace that shows net.core.rmem_default for the host's."""
_STATIC = "/tare-probe"
_ARGV = [_STATIC, "--version"]
_SAYS = "tare-probe"
_PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
_CALL_S = 30.0
_OF_CONTAINERD = "only needed by arms with deployment: containerd"
_LAST_LINE = 160
_BACKTRACE = "\nStack backtrace:"
_PORT = {"5000/tcp": ("127.0.0.1", None)}


def runtime_lines(host: Host) -> Iterator[Line]:
    """A line for each OCI runtime, started without an engine."""
    if (program := find(host, PROBE)) is None:
        yield _nothing_to_start("runtimes")
        return
    for name in RUNTIMES:
        yield _runtime(host, name, program)


def named_engine_lines(host: Host, name: str) -> Iterator[Line]:
    """A line for an engine found by name; for rootless Podman also one for each network that it makes."""
    if (program := find(host, PROBE)) is None:
        yield _nothing_to_start(f"engine {name}")
        return
    yield _engine(host, name, program)
    if name == ROOTLESS:
        yield from _user_networks(host, program)


def _nothing_to_start(line: str) -> Line:
    return missing(line, "cannot be tried: there is no tare-probe to start", PROBE.hint)


def _engine(host: Host, name: str, program: str) -> Line:
    """Try a container of only one static program, without a network."""
    line = f"engine {name}"
    try:
        with closing(connect_to(name, timeout_s=_CALL_S)) as client:
            version = client.version().get("Version")
            lacking = why_no_user_ranges(engine_facts(client, host)) if name == ROOTLESS else None
            held = _service_ceilings(host) if name == ROOTLESS else None
            output = _in_engine(host, client, host.read(program) or b"", held=held)
    except (EnvironmentLacks, RunFailed) as error:
        return missing(line, error.what, error.hint or "only needed by arms that name it")
    except (DockerException, RequestException) as error:
        return missing(
            line, f"it answers, but starts no container: {_short(str(error))}", "look at the engine's log"
        )
    if _SAYS not in output:
        return missing(line, f"a container started, but printed {_short(output)!r}", "look at the engine's log")
    if lacking is not None:
        return missing(line, f"{version}: a container ran, and {lacking}", "only needed by arms that name it")
    if name == ROOTLESS and _user(host) not in ("", "0"):
        why = f"{version}: a container ran, but tare needs root to set its limits"
        return missing(line, why, "only needed by arms that name it: run tare with sudo")
    return ok(line, f"{version}: works, a container ran")


def _user_networks(host: Host, program: str) -> Iterator[Line]:
    """Try networks of a rootless engine: a container with a published port."""
    try:
        with closing(connect_to(ROOTLESS, timeout_s=_CALL_S)) as client:
            for kind in (NetworkKind.ROOTLESSPORT, NetworkKind.SLIRP4NETNS):
                yield _user_network(host, client, program, kind)
    except EnvironmentLacks:
        return  # the engine's own line reports this


def pasta_line(host: Host) -> Line:
    """Start a program behind pasta, as the user of rootless Podman."""
    line = f"network {NetworkKind.PASTA}"
    try:
        service = service_at(address_of(ROOTLESS))
        before = (
            () if _user(host) == str(service.uid) else as_user(service)
        )  # a user enters no namespace of systemd's
        done = host.run([*before, "pasta", "--config-net", "--", "true"], timeout_s=_CALL_S, check=False)
    except TareError as error:
        return missing(line, str(error), "only needed by arms that name it")
    if done.code == 0:
        return ok(line, "works, a program ran behind it")
    reason = _short(done.stderr.decode(errors="replace"))
    return missing(line, f"does not work: {reason}", "only needed by arms that name it: apt-get install passt")


def _user_network(host: Host, client: DockerClient, program: str, kind: NetworkKind) -> Line:
    line, given = f"network {kind}", {"network_mode": NETWORKS[kind], "ports": _PORT}
    try:
        output = _in_engine(host, client, host.read(program) or b"", given, _service_ceilings(host))
    except (RunFailed, DockerException, RequestException) as error:
        return missing(line, f"does not work: {_short(str(error))}", "only needed by arms that name it")
    if _SAYS not in output:
        return missing(line, f"a container started, but printed {_short(output)!r}", "look at the engine's log")
    return ok(line, "works, a container ran behind it")


def _in_engine(
    host: Host,
    client: DockerClient,
    program: bytes,
    network: dict[str, Any] | None = None,
    held: dict[str, int] | None = None,
) -> str:
    """Output of the program in a container. `held`: upper bounds of the engine's own limits."""
    done = in_container(
        host,
        client,
        tree({_STATIC: program}, 0o755),
        _ARGV,
        prefix="tare-doctor",
        timeout_s=_CALL_S,
        held=held,
        **(network or {"network_mode": "none"}),
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def _service_ceilings(host: Host) -> dict[str, int]:
    """Hard limits of a user's engine; empty if it is not on this machine."""
    with suppress(EnvironmentLacks):
        return process_ceilings(host, service_at(address_of(ROOTLESS)).pid)
    return {}


def _user(host: Host) -> str:
    return host.run(["id", "-u"], timeout_s=_CALL_S, check=False).text.strip()


def _runtime(host: Host, name: str, program: str) -> Line:
    """Try a runtime without options, then with the options that may make it work here."""
    line = f"runtime {name}"
    try:
        version = host.run([name, "--version"], timeout_s=_CALL_S, check=False)
    except TareError:
        return ok(line, "not installed")
    words = version.text.split("\n")[0].strip() or "version unknown"
    if _user(host) not in ("", "0"):
        return missing(
            line,
            f"{words}: cannot be tried without root",
            "only needed by arms that name it: run `tare doctor` with sudo",
        )
    why = _why_not(host, name, (), program)
    if why is None:
        return ok(line, f"{words}: works, a container ran")
    for options in _OPTIONS.get(name, ()):
        if _why_not(host, name, options, program) is None:
            given = f"works with {' '.join(options)}, which the engine has to give it (runtimeArgs of daemon.json)"
            return ok(line, f"{words}: {given}; without: {why}")
    return missing(line, f"{words}: does not work: {why}", "arms cannot use it here; another release may")


def _why_not(host: Host, name: str, options: tuple[str, ...], program: str) -> str | None:
    """Run a hand-made bundle of the OCI specification as an engine would, but without one; return why it failed."""
    place = host.run(["mktemp", "-d"], timeout_s=_CALL_S).text.strip()
    ident = f"tare-doctor-{uuid4().hex[:12]}"
    own = [name, *options, "--root", f"{place}/state"]
    try:
        host.run(["mkdir", f"{place}/rootfs"], timeout_s=_CALL_S)
        host.run(["cp", program, f"{place}/rootfs{_STATIC}"], timeout_s=_CALL_S)
        host.put(json.dumps(bundle(ident)).encode(), f"{place}/config.json")
        # Detached, as an engine's shim does it: youki waits forever for a program that ends at once.
        run = [*own, "run", "--detach", "--bundle", place, ident]
        done = host.run(run, timeout_s=_CALL_S, check=False)
    except TimedOut:
        return f"a container did not end within {_CALL_S:g} s"
    finally:
        with suppress(TareError):
            host.run([*own, "delete", "--force", ident], timeout_s=_CALL_S, check=False)
        host.run(["rm", "-rf", "--one-file-system", place], timeout_s=_CALL_S, check=False)
    if done.code == 0 and _SAYS in done.text:
        return None
    return _short((done.stderr.decode(errors="replace") + done.text).strip())


def containerd_line(host: Host) -> Line:
    """Try containerd through its own client, in a namespace that is removed again; for `deployment: containerd`."""
    line = "containerd"
    if (program := find(host, PROBE)) is None:
        return _nothing_to_start(line)
    there = (each for each in SOCKETS if host.run(["test", "-S", each], timeout_s=_CALL_S, check=False).code == 0)
    if (address := next(there, None)) is None:
        return ok(line, "not running")
    place = host.run(["mktemp", "-d"], timeout_s=_CALL_S).text.strip()
    ident = f"tare-doctor-{uuid4().hex[:12]}"
    own = ["ctr", "--address", address, "--namespace", ident]
    try:
        host.run(["mkdir", f"{place}/rootfs"], timeout_s=_CALL_S)
        host.run(["cp", program, f"{place}/rootfs{_STATIC}"], timeout_s=_CALL_S)
        started = [*own, "run", "--rm", "--rootfs", "--cgroup", "", f"{place}/rootfs", ident, *_ARGV]
        done = host.run(started, timeout_s=_CALL_S, check=False)
        if done.code != 0:
            host.run([*own, "container", "delete", ident], timeout_s=_CALL_S, check=False)
        host.run([*own, "namespace", "remove", ident], timeout_s=_CALL_S, check=False)
    except TareError as error:  # its client may be missing, or may hang
        return missing(line, f"{address}: cannot be tried: {error.what}", _OF_CONTAINERD)
    finally:
        host.run(["rm", "-rf", "--one-file-system", place], timeout_s=_CALL_S, check=False)
    if done.code == 0 and _SAYS in done.text:
        return ok(line, f"{address}: works, a container ran without an engine")
    reason = _short((done.stderr.decode(errors="replace") + done.text).strip())
    return missing(line, f"{address}: does not work: {reason}", _OF_CONTAINERD)


def bundle(ident: str) -> dict[str, object]:
    """config.json of a container that runs tare-probe once, in namespaces of its own, without a network."""
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": _ARGV,
            "env": [_PATH],  # youki starts nothing without it
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "tare",
        "mounts": mounts,
        "linux": {
            "cgroupsPath": f"/{ident}",
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
        },
    }


def _short(text: str) -> str:
    """Last line that is meant to be read: youki's ends with a position in its program."""
    lines = [line.strip() for line in text.partition(_BACKTRACE)[0].splitlines() if line.strip()]
    return lines[-1][:_LAST_LINE] if lines else "it printed nothing"
