"""A container's own network namespace, attached by CNI plug-ins to a bridge like dockerd's, without dockerd.

The namespace is a file in the task's scratch directory: plug-ins can attach it before the container starts, and it
is removed with this directory.
"""

from __future__ import annotations

from tare.deployments.containerd.client import scratch_of
from tare.deployments.pod import cni
from tare.deployments.vm.network import remove_link
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import make_marked

KIND = "bridge"
PLUGINS = (KIND, "host-local")
PROGRAMS = ("unshare", "nsenter", "ip")
_CALL_S = 30.0


def namespace_of(name: str) -> str:
    """Path of a task's network namespace."""
    return f"{scratch_of(name)}/net"


def attach(host: Host, ledger: Ledger, name: str) -> str:
    """Make the namespace in the existing scratch directory and return the task's address.

    Everything is noted in the ledger before it is made.
    """
    namespace, place = namespace_of(name), cni.scratch_of(name)
    ledger.note(Kind.RULES, f"cni:{name}", host=host.name)
    links = cni.links_of(name, ledger.owner_on(host.name))
    ledger.note(Kind.LINK, links.bridge, host=host.name)
    make_marked(host, place, "0700")
    host.put(b"", namespace)
    host.run(["unshare", f"--net={namespace}", "ip", "link", "set", "dev", "lo", "up"], timeout_s=_CALL_S)
    return cni.attach(host, KIND, name, links, place, namespace, None).address


def detach(host: Host, ledger: Ledger, name: str) -> None:
    """Undo `attach`, except for the namespace itself. Safe if nothing or only a part was made."""
    bridge = cni.links_of(name, ledger.owner_on(host.name)).bridge
    noted = {(entry.kind, entry.ident) for entry in ledger.entries() if entry.host == host.name}
    if (Kind.RULES, f"cni:{name}") in noted:
        cni.detach(host, name, cni.scratch_of(name))
        ledger.forget(Kind.RULES, f"cni:{name}", host=host.name)
    if (Kind.LINK, bridge) in noted:
        remove_link(host, bridge)
        ledger.forget(Kind.LINK, bridge, host=host.name)


def names(name: str, address: str, resolvers: bytes) -> dict[str, bytes]:
    """Content of the files of /etc that resolve names inside.

    The host name is the task's own, as with an engine.
    """
    hosts = f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{address}\t{name}\n"
    return {"hosts": hosts.encode(), "hostname": f"{name}\n".encode(), "resolv.conf": resolvers}
