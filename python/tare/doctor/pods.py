"""Which parts of a pod this machine can make: each is made in otherwise empty network namespaces."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tare.deployments.cgroup.removal import send
from tare.deployments.observe import namespaces_of
from tare.deployments.pod import cni, rules
from tare.deployments.pod.services import Service, cluster_ip_of
from tare.doctor import Line, missing, ok
from tare.errors import EnvironmentLacks, RunFailed, TareError
from tare.sites import Completed, Host, Output, Process
from tare.sites.local import own_process

_CALL_S, _POLL_S = 30.0, 0.02
_HELD_S = 60
"""A namespace ends with its holder, which ends by itself if the doctor is killed."""
_BLOCK = ipaddress.IPv4Network("10.232.0.0/18")
_PODS = ipaddress.IPv4Network("10.231.0.0/29")
_PORT, _SERVICES = 5000, 10
_ADVICE = "only needed by arms with `sut.pod`"


def pod_lines(host: Host) -> Iterator[Line]:
    """A line for each way to attach a pod, and for each kind of Service rules."""
    if host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() != "0":
        yield missing("pods", "cannot be tried without root", f"{_ADVICE}: run `tare doctor` with sudo")
        return
    for kind, port in (("bridge", None), ("bridge", _PORT), ("macvlan", None)):
        plugin = kind if port is None else "portmap"
        yield _tried(host, f"CNI {plugin}", (kind, "host-local", plugin), _attacher(kind, port))
    for proxy in rules.PROXIES:
        yield _tried(host, f"Services by {proxy}", (), _server(proxy))


_Trial = Callable[["Within", str], str]


def _tried(host: Host, line: str, plugins: Sequence[str], trial: _Trial) -> Line:
    try:
        places = {cni.directory_of(host, plugin) for plugin in plugins}
    except EnvironmentLacks as error:
        return ok(line, f"not installed: {error.what}")
    place = host.run(["mktemp", "-d"], timeout_s=_CALL_S).text.strip()
    try:
        with _namespace(host, f"{place}/node") as node:
            reason = trial(Within(host, node.pid), place)
    except TareError as error:
        return missing(
            line, f"does not work: {error.what}", f"{_ADVICE}{'' if error.hint is None else f': {error.hint}'}"
        )
    finally:
        host.run(["rm", "-rf", "--one-file-system", place], timeout_s=_CALL_S, check=False)
    return ok(line, ": ".join([*sorted(places), reason]))


def _attacher(kind: str, port: int | None) -> _Trial:
    def attach(node: Within, place: str) -> str:
        """Attach a second namespace, in place of a pod's, with the plug-ins."""
        name = f"tare-doctor-{uuid4().hex[:12]}"
        links = cni.links_of(name, own_process())
        if kind == "macvlan":
            veth = ["ip", "link", "add", "name", links.master, "type", "veth", "peer", "name", links.peer]
            node.run(veth, timeout_s=_CALL_S)
            node.run(["ip", "link", "set", "dev", links.master, "up"], timeout_s=_CALL_S)
        with _namespace(node.host, f"{place}/pod") as pod:
            attached = cni.attach(node, kind, name, links, place, f"/proc/{pod.pid}/ns/net", port)
            shown = Within(node.host, pod.pid).run(["ip", "-4", "-oneline", "address", "show"], timeout_s=_CALL_S)
            cni.detach(node, name, place)
        if f" {attached.address}/" not in shown.text:
            raise RunFailed(f"the namespace was attached, but has not its address {attached.address}")
        return "works, a namespace was attached"

    return attach


def _server(proxy: str) -> _Trial:
    def serve(node: Within, place: str) -> str:  # noqa: ARG001 - a trial
        service = Service(
            uuid4().hex[:12], cluster_ip_of(_BLOCK, _SERVICES), _BLOCK, _PORT, f"{_PODS[2]}:{_PORT}", _PODS,
            _SERVICES, str(_PODS[1]), 30_000,
        )  # fmt: skip
        in_force = rules.put(node, proxy, service)
        rules.drop(node, proxy, service.tag)
        return f"{in_force.by}: works, the kernel held {in_force.rules} rules of {in_force.services} Services"

    return serve


@contextmanager
def _namespace(host: Host, output: str) -> Iterator[Process]:
    """An empty network namespace, held by a sleeping program."""
    with ExitStack() as ends:
        argv = ["unshare", "--net", "sleep", str(_HELD_S)]
        holder = host.start(argv, output=Output(f"{output}.out", f"{output}.err"))
        ends.callback(send, host, holder, "KILL")
        own, deadline = namespaces_of(host, "self").get("net"), time.monotonic() + _CALL_S
        while namespaces_of(host, holder.pid).get("net") in {own, None}:
            if time.monotonic() > deadline:
                raise EnvironmentLacks("no network namespace can be made", hint="it takes CAP_SYS_ADMIN")
            time.sleep(_POLL_S)
        yield holder


class Within(Host):
    """A host whose programs run in the network namespace of one of its processes; files are the host's."""

    def __init__(self, host: Host, pid: int) -> None:
        self.host, self.name = host, host.name
        self._inside = ("nsenter", f"--net=/proc/{pid}/ns/net")

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        """As `Host.run`, inside the namespace."""
        return self.host.run([*self._inside, *argv], **options)

    def start(self, argv: Sequence[str], **options: Any) -> Process:
        """As `Host.start`, inside the namespace."""
        return self.host.start([*self._inside, *argv], **options)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """As `Host.put`."""
        self.host.put(source, target, mode=mode)

    def get(self, source: str, target: Path) -> None:
        """As `Host.get`."""
        self.host.get(source, target)

    def read(self, path: str) -> bytes | None:
        """As `Host.read`."""
        return self.host.read(path)
