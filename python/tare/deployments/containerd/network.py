"""A network namespace of a container's own, attached by CNI's plug-ins: a bridge as dockerd makes one, without it.

The namespace is a file of the task's scratch directory, so that plug-ins attach it before the container begins, and
that it goes with that directory.
"""

from __future__ import annotations

from tare.deployments.containerd.client import scratch_of
from tare.deployments.pod import cni
from tare.deployments.vm.network import remove_link
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger

KIND = "bridge"
PLUGINS = (KIND, "host-local")
PROGRAMS = ("unshare", "nsenter", "ip")
_CALL_S = 30.0


def namespace_of(name: str) -> str:
    """Path of a task's namespace."""
    return f"{scratch_of(name)}/net"


def attach(host: Host, ledger: Ledger, name: str) -> str:
    """Make it, noted first, in the scratch directory that is there already; the task's address."""
    namespace, place = namespace_of(name), cni.scratch_of(name)
    ledger.note(Kind.RULES, f"cni:{name}", host=host.name)
    ledger.note(Kind.LINK, cni.links_of(name).bridge, host=host.name)
    host.run(["install", "-d", "-m", "0700", "--", place], timeout_s=_CALL_S)
    host.put(b"", namespace)
    host.run(["unshare", f"--net={namespace}", "ip", "link", "set", "dev", "lo", "up"], timeout_s=_CALL_S)
    return cni.attach(host, KIND, name, place, namespace, None).address


def detach(host: Host, ledger: Ledger, name: str) -> None:
    """Undo it, but for the namespace itself. Safe where there is nothing, or only a part."""
    bridge = cni.links_of(name).bridge
    noted = {(entry.kind, entry.ident) for entry in ledger.entries() if entry.host == host.name}
    if (Kind.RULES, f"cni:{name}") in noted:
        cni.detach(host, name, cni.scratch_of(name))
        ledger.forget(Kind.RULES, f"cni:{name}", host=host.name)
    if (Kind.LINK, bridge) in noted:
        remove_link(host, bridge)
        ledger.forget(Kind.LINK, bridge, host=host.name)


def names(name: str, address: str, resolvers: bytes) -> dict[str, bytes]:
    """The files of /etc by which names resolve in it: its host name is its own, as an engine has it."""
    hosts = f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{address}\t{name}\n"
    return {"hosts": hosts.encode(), "hostname": f"{name}\n".encode(), "resolv.conf": resolvers}
