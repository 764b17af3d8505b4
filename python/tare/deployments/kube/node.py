"""The cluster node that a host of tare is: found by its boot ID; also reads what pods on it leave behind."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tare.deployments.cgroup.hierarchy import Cgroups
from tare.deployments.kube.api import ApiRefused, Cluster, Tree, connect
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.process import boot_id

_CALL_S = 30.0
_SOCKET = "unix:///run/containerd/containerd.sock"
_LOGS = "/var/log/pods"
"""kubelet's defaults (KubeletConfiguration, v1beta1)."""
_CONTAINERD = "containerd://"
_LONGEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Node:
    """A node. `address`: its address in the cluster. `socket`: socket of its containerd.

    `logs`: kubelet's log directory. `cpu_manager`: kubelet's CPU manager policy; `None` if the user may not read
    kubelet's configuration.
    """

    name: str
    address: str
    runtime: str
    kubelet: str
    socket: str = _SOCKET
    logs: str = _LOGS
    cpu_manager: str | None = None


def node_of(cluster: Cluster, host: Host) -> Node:
    """The node that `host` is.

    Raises `EnvironmentLacks` if it is no node, is not ready, or does not use containerd.
    """
    boot = boot_id(host)
    listed = cluster.must_get("/api/v1/nodes").get("items") or []
    tree = next((each for each in listed if each["status"]["nodeInfo"].get("bootID") == boot), None)
    if tree is None:
        names = ", ".join(sorted(each["metadata"]["name"] for each in listed)) or "none"
        raise EnvironmentLacks(
            f"{host.name} is not a node of the cluster at {cluster.server} (its nodes: {names})",
            hint="run tare on a node, or name nodes as the hosts of a site: --sites sites.yaml",
        )
    name, info = tree["metadata"]["name"], tree["status"]["nodeInfo"]
    if (why := why_not_ready(tree)) is not None:
        raise EnvironmentLacks(f"the node {name} starts no pods: {why}", hint=f"kubectl describe node {name}")
    runtime = str(info["containerRuntimeVersion"])
    if not runtime.startswith(_CONTAINERD):
        raise EnvironmentLacks(
            f"the node {name} runs pods with {runtime}, and tare copies images only to containerd",
            hint="use a node with containerd",
        )
    own = _configuration(cluster, name)
    return Node(
        name=name,
        address=internal_address(tree),
        runtime=runtime,
        kubelet=str(info["kubeletVersion"]),
        socket=str(own.get("containerRuntimeEndpoint") or _SOCKET).removeprefix("unix://"),
        logs=str(own.get("podLogsDir") or _LOGS),
        cpu_manager=own.get("cpuManagerPolicy"),
    )


def address_in_cluster(host: Host, reach: Callable[[], Cluster] = connect) -> str:
    """Address of the node that `host` is, at which pods reach its services.

    Raises `EnvironmentLacks` if it has none.
    """
    node = node_of(reach(), host)
    if not node.address:
        raise EnvironmentLacks(
            f"the node {node.name} has no address in its cluster, at which a client in a pod could find a server",
            hint=f"kubectl get node {node.name} --output wide; kubelet takes --node-ip",
        )
    return node.address


def internal_address(tree: Tree) -> str:
    """Address at which other nodes reach this node; empty if it has none."""
    every = {each["type"]: each["address"] for each in tree["status"].get("addresses") or []}
    return str(every.get("InternalIP") or every.get("ExternalIP") or "")


def why_not_ready(tree: Tree) -> str | None:
    """Why a node starts no pods, as it or its controller last reported; `None` if it is ready."""
    ready = next((each for each in tree["status"].get("conditions") or [] if each["type"] == "Ready"), None)
    if ready is not None and ready["status"] == "True":
        return None
    return (
        "it never reported"
        if ready is None
        else str(ready.get("message") or ready.get("reason") or ready["status"])
    )


def process_of(host: Host, cgroups: Cgroups, container: str) -> int:
    """First process of a container, found by the cgroup with the container's ID; `RunFailed` if there is none."""
    mount = cgroups.mount_of("memory") or cgroups.hierarchies[0].mount
    argv = ["find", mount, "-type", "d", "-name", f"*{container}*"]
    places = host.run(argv, timeout_s=_CALL_S, check=False).text.splitlines()
    for place in places:
        if pids := (host.read(f"{place}/cgroup.procs") or b"").split():
            return int(pids[0])
    raise RunFailed(f"no process of the container {container[:12]} is in a control group of {host.name}")


@dataclass(frozen=True)
class Printed:
    """Output of a container."""

    stdout: bytes
    stderr: bytes


def printed_by(host: Host, node: Node, pod: Tree, container: str) -> Printed:
    """Output of a container, read from the runtime's log files on the node: the API merges both outputs.

    kubelet rotates a log file at 10 MiB (`containerLogMaxSize`) and compresses all but the last two.
    """
    meta = pod["metadata"]
    directory = f"{node.logs}/{meta['namespace']}_{meta['name']}_{meta['uid']}/{container}"
    argv = ["find", directory, "-type", "f", "-name", "0.log*", "-printf", "%f\n"]
    names = sorted(
        host.run(argv, timeout_s=_CALL_S, check=False).text.split(), key=lambda name: (name == "0.log", name)
    )
    raw = [host.read(f"{directory}/{name}") or b"" for name in names]
    return parse_log(gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each for each in raw)


def parse_log(files: Iterable[bytes]) -> Printed:
    """Parse lines `TIME STREAM TAG CONTENT`.

    Parts of a split line have tag P, the last part F (CRI logging design).
    """
    streams = {b"stdout": list[bytes](), b"stderr": list[bytes]()}
    for line in (line for raw in files for line in raw.split(b"\n")):
        parts = line.split(b" ", 3)
        if len(parts) >= 3 and parts[1] in streams:
            content = parts[3] if len(parts) == 4 else b""
            streams[parts[1]].append(content + (b"\n" if parts[2][:1] == b"F" else b""))
    return Printed(b"".join(streams[b"stdout"])[-_LONGEST_BYTES:], b"".join(streams[b"stderr"])[-_LONGEST_BYTES:])


def _configuration(cluster: Cluster, name: str) -> Tree:
    """Configuration of kubelet if the user may read it; otherwise empty, which stands for kubelet's defaults."""
    try:
        tree = cluster.get(f"/api/v1/nodes/{name}/proxy/configz")
    except ApiRefused:
        return {}
    own = (tree or {}).get("kubeletconfig")
    return own if isinstance(own, dict) else {}
