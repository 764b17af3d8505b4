"""How a virtual machine is attached: QEMU's user-mode network, or a tap on a bridge of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tare.deployments import Task
from tare.deployments.network.bridge import free_network
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host, Process
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import digits_of
from tare.study.values import NetworkKind

_CALL_S = 30.0
_GONE_S, _POLL_S = 5.0, 0.02
HOST_LOOPBACK = "10.0.2.2"
"""In QEMU's user network, the gateway is the host's loopback address (qemu(1), -netdev user, restrict=off)."""


@dataclass(frozen=True)
class Attachment:
    """`netdev`: QEMU's option. `address`, `prefix`, `gateway`: the machine's.

    `reached`: address that a client dials.
    """

    netdev: str
    address: str
    prefix: int
    gateway: str
    reached: str
    links: tuple[str, ...] = ()


def attach(host: Host, ledger: Ledger, task: Task) -> Attachment:
    """Make the interfaces that the task's network needs, and note them in the ledger."""
    if task.network is NetworkKind.USER:
        forward = f",hostfwd=tcp:127.0.0.1:{task.port}-:{task.port}" if task.port else ""
        return Attachment(f"user,id=net,restrict=off{forward}", "10.0.2.15", 24, HOST_LOOPBACK, "127.0.0.1")
    if task.network is NetworkKind.TAP:
        return _tap(host, ledger, task)
    raise EnvironmentLacks(
        f"{task.name}: a virtual machine has its own network, so it cannot use {task.network.value}",
        hint="use network: user or tap",
    )


def links_of(task: Task, owner: Process) -> tuple[str, str]:
    """Names of bridge and tap."""
    digits = digits_of(task.name, owner, 9)
    return f"tarb{digits}", f"tart{digits}"


def detach(host: Host, ledger: Ledger, task: Task) -> None:
    """Remove what `attach` made; safe if there is nothing."""
    if task.network is NetworkKind.TAP:
        for link in reversed(links_of(task, ledger.owner_on(host.name))):
            remove_link(host, link)
            ledger.forget(Kind.LINK, link, host=host.name)


def remove_link(host: Host, link: str) -> bool:
    """Remove an interface; return whether there was one. Raises `RunFailed` if it stays.

    If the other end was in a namespace that has just ended, the kernel may be removing the interface at the same
    time.
    """
    deadline, was_there = time.monotonic() + _GONE_S, False
    while _is_there(host, link):
        was_there = True
        try:
            host.run(["ip", "link", "delete", "dev", link], timeout_s=_CALL_S)
        except RunFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            break
    return was_there


def _is_there(host: Host, link: str) -> bool:
    """Whether an interface exists; also one that is being removed, whose files cannot be read any more."""
    try:
        return host.read(f"/sys/class/net/{link}/ifindex") is not None
    except RunFailed:
        return True


def _tap(host: Host, ledger: Ledger, task: Task) -> Attachment:
    bridge, tap = links_of(task, ledger.owner_on(host.name))
    network = free_network(host, task.name)
    gateway, own = network.hosts()  # the bridge has the first address, the machine the second
    for link in (bridge, tap):
        if host.read(f"/sys/class/net/{link}/ifindex") is not None:
            raise EnvironmentLacks(f"an interface {link} exists already", hint=f"ip link delete {link}")
        ledger.note(Kind.LINK, link, host=host.name)
    commands = (
        ("link", "add", "name", bridge, "type", "bridge"),
        ("address", "add", f"{gateway}/{network.prefixlen}", "dev", bridge),
        ("link", "set", "dev", bridge, "up"),
        ("tuntap", "add", "dev", tap, "mode", "tap"),
        ("link", "set", "dev", tap, "master", bridge, "up"),
    )
    try:
        for words in commands:
            host.run(["ip", *words], timeout_s=_CALL_S)
    except RunFailed as error:
        detach(host, ledger, task)
        raise EnvironmentLacks(
            f"a tap for the virtual machine cannot be made: {error.what}",
            hint="it needs root, iproute2 and /dev/net/tun; network: user needs none of them",
        ) from error
    netdev = f"tap,id=net,ifname={tap},script=no,downscript=no,vhost=off"
    return Attachment(netdev, str(own), network.prefixlen, str(gateway), str(own), (bridge, tap))
