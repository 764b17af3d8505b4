"""Attach a namespace with CNI plug-ins, as a container runtime runs them for kubelet.

Each plug-in gets its configuration on standard input and answers in JSON (CNI specification 1.0.0). Whatever is
needed to undo it lies in the pod's scratch directory, so that another tare can.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.deployments.directories import remove_tree
from tare.deployments.network.bridge import free_network
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host, Process
from tare.sites.marks import digits_of

DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
"""Directories of plug-ins: upstream's, Debian's, Fedora's."""
PORTMAP_CHAINS = ("CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK")
INTERFACE = "eth0"
_CALL_S = 60.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ATTACHED = "attached.json"


@dataclass(frozen=True)
class Attachment:
    """An attached pod. `address`: its address. `gateway`: the host's address on its network.

    `network`: its own network.
    """

    address: str
    gateway: str
    network: ipaddress.IPv4Network


@dataclass(frozen=True)
class Links:
    """Interfaces of the host with unique names; a name has at most 15 characters."""

    bridge: str
    master: str
    peer: str
    own: str


def links_of(name: str, owner: Process) -> Links:
    """Interfaces for the pod of a task."""
    digits = digits_of(name, owner, 9)
    return Links(*(f"tare{letter}{digits}" for letter in "cmpo"))


def directory_of(host: Host, plugin: str) -> str:
    """Directory of a plug-in. Raises `EnvironmentLacks` if it is in none."""
    for directory in DIRECTORIES:
        if host.run(["test", "-x", f"{directory}/{plugin}"], timeout_s=_CALL_S, check=False).code == 0:
            return directory
    raise EnvironmentLacks(
        f"the CNI plug-in {plugin} is in none of {', '.join(DIRECTORIES)}",
        hint="apt-get install containernetworking-plugins",
    )


def configurations(  # noqa: PLR0913, PLR0917 - a pod and its attachment
    kind: str,
    name: str,
    links: Links,
    scratch: str,
    network: ipaddress.IPv4Network,
    host_port: tuple[str, int] | None,
) -> tuple[dict[str, Any], ...]:
    """Configurations of the chain of plug-ins, in order.

    `host_port`: host address and port to publish; the pod's port is the same.
    """
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": str(network)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": f"{scratch}/addresses",
    }
    common = {"cniVersion": "1.0.0", "name": name}
    first: dict[str, Any] = {**common, "type": "macvlan", "master": links.master, "mode": "bridge", "ipam": ipam}
    if kind == "bridge":
        own = {"bridge": links.bridge, "isGateway": True, "hairpinMode": True, "ipMasq": False}
        first = {**common, "type": "bridge", **own, "ipam": ipam}
    if host_port is None:
        return (first,)
    address, port = host_port
    mapping = {"hostPort": port, "containerPort": port, "protocol": "tcp", "hostIP": address}
    ports = {**common, "type": "portmap", "snat": True, "runtimeConfig": {"portMappings": [mapping]}}
    return (first, ports)


def attach(  # noqa: PLR0913, PLR0917 - a namespace and its attachment
    host: Host, kind: str, name: str, links: Links, scratch: str, namespace: str, port: int | None
) -> Attachment:
    """Run ADD of each plug-in. `namespace`: its path. `port`: port that portmap publishes on the host's address."""
    network = free_network(host, name, prefix=29)
    gateway = str(next(network.hosts()))
    chain = configurations(kind, name, links, scratch, network, None if port is None else (gateway, port))
    host.put(json.dumps({"chain": chain}).encode(), f"{scratch}/{_ATTACHED}")
    result: dict[str, Any] = {}
    for config in chain:
        given = {**config, "prevResult": result} if result else config
        result = _call(host, "ADD", given, name, namespace)
    if not result.get("ips"):
        raise RunFailed(f"the CNI plug-in {chain[0]['type']} gave {name} no address")
    address = str(result["ips"][0]["address"]).partition("/")[0]
    return Attachment(address, gateway, network)


def detach(host: Host, name: str, scratch: str) -> bool:
    """Run DEL in reverse order and remove portmap's chains if they are empty; return whether anything was attached.

    `scratch` is removed last, because it holds what is needed to detach the pod.
    """
    raw = host.read(f"{scratch}/{_ATTACHED}")
    chain: Sequence[Mapping[str, Any]] = json.loads(raw)["chain"] if raw else ()
    for config in reversed(chain):
        _call(host, "DEL", config, name, "")  # the namespace may be gone, which is no error (specification, DEL)
    if any(config["type"] == "portmap" for config in chain):
        _drop_portmap(host)
    remove_tree(host, scratch)
    return raw is not None


def interface_kind(host: Host, namespace: str) -> str:
    """Kind of the interface in an attached namespace, as the kernel reports it."""
    argv = ["nsenter", f"--net={namespace}", "ip", "-details", "-json", "link", "show", INTERFACE]
    (shown,) = json.loads(host.run(argv, timeout_s=_CALL_S).text)
    return str(shown["linkinfo"]["info_kind"])


def scratch_of(name: str) -> str:
    """Directory of a task's attachment. As with bare tasks, no directory above it belongs to tare."""
    return f"/run/tare-pod.{name}"


def _call(host: Host, command: str, config: Mapping[str, Any], name: str, netns: str) -> dict[str, Any]:
    plugin = str(config["type"])
    directory = directory_of(host, plugin)
    env = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": name,
        "CNI_NETNS": netns,
        "CNI_IFNAME": INTERFACE,
        "CNI_PATH": directory,
        "PATH": _PATH,
    }
    words = json.dumps(config).encode()
    done = host.run([f"{directory}/{plugin}"], timeout_s=_CALL_S, stdin=words, env=env, check=False)
    try:
        answer = json.loads(done.stdout) if done.stdout.strip() else {}
    except ValueError:
        answer = {"msg": done.text.strip()}
    if done.code != 0:
        message = answer.get("msg") or done.stderr.decode(errors="replace").strip() or f"it ended with {done.code}"
        done_to = "attach" if command == "ADD" else "detach"
        raise RunFailed(f"the CNI plug-in {plugin} does not {done_to} {name}: {message}")
    return dict(answer)


def _drop_portmap(host: Host) -> None:
    """Remove portmap's shared chains if the first holds no rule and so no pod uses them."""
    saved = host.run(["iptables-save", "-t", "nat"], timeout_s=_CALL_S).text
    lines = portmap_removal(saved)
    if lines:
        words = "\n".join(lines) + "\n"
        host.run(["iptables-restore", "--noflush", "-w", "30"], timeout_s=_CALL_S, stdin=words.encode())


def portmap_removal(saved: str) -> list[str]:
    """Input of iptables-restore that removes portmap's chains from `iptables-save -t nat`.

    Empty while a pod has a rule.
    """
    rules = [line for line in saved.splitlines() if line.startswith("-A ")]
    there = [name for name in PORTMAP_CHAINS if f":{name} " in saved]
    if not there or any(rule.startswith(f"-A {PORTMAP_CHAINS[0]} ") for rule in rules):
        return []
    inside = tuple(f"-A {name} " for name in PORTMAP_CHAINS)
    leading = [
        rule for rule in rules if not rule.startswith(inside) and any(f"-j {name}" in rule for name in there)
    ]
    return [
        "*nat",
        *(f":{name} - [0:0]" for name in there),
        *(f"-D {rule[3:]}" for rule in leading),
        *(f"-X {name}" for name in there),
        "COMMIT",
    ]
