"""The address of a host if sites.yaml has none."""

from __future__ import annotations

import contextlib
import socket
import subprocess

from tare.errors import EnvironmentLacks
from tare.sites.file import SshSpec, leads_nowhere
from tare.sites.ssh.dialing import ssh_argv

_LIMIT_S = 10.0
_ANY_PORT = 9
"""No packet is sent there: a connected UDP socket only asks the kernel for its route."""


def address_of(spec: SshSpec, *, alone: bool = False) -> str:
    """`address`, else the address that ssh(1) uses. Raises `EnvironmentLacks` if other hosts cannot reach that one.

    `alone`: there are no other hosts.
    """
    if spec.address is not None:
        return spec.address
    argv = [*ssh_argv(spec), "-G", "--", spec.ssh]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=_LIMIT_S, stdin=subprocess.DEVNULL)
    words = (line.partition(" ") for line in done.stdout.decode(errors="replace").splitlines())
    name = next((value for key, _, value in words if key == "hostname"), "")
    with contextlib.suppress(OSError):
        known = [str(address[0]) for *_, address in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
        usable = [each for each in known if alone or leads_nowhere(each) is None]
        if usable:
            return usable[0]
        if known:
            raise EnvironmentLacks(
                f"{spec.display_name} has no address at which other hosts can reach it: ssh reaches it at "
                f"{known[0]}, {leads_nowhere(known[0])}",
                hint="give the host an `address` in sites.yaml",
            )
    raise EnvironmentLacks(
        f"{spec.display_name} has no address at which other hosts can reach it: {name or spec.ssh} is not known "
        "here",
        hint="give the host an `address` in sites.yaml",
    )


def own_address(other: str) -> str:
    """Address of the machine that tare runs on, on the route to `other`."""
    family = socket.AF_INET6 if ":" in other else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((other, _ANY_PORT))
        return str(way.getsockname()[0])
