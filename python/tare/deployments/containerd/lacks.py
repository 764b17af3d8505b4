"""Why containerd by itself cannot be used, found out before anything is started."""

from __future__ import annotations

from tare.deployments.containerd.ctr import ctr, find_socket
from tare.errors import TareError
from tare.sites import Host
from tare.sites.ssh.host import SshHost

FAR = "containers of containerd are made on the machine that tare runs on; use `container`, or leave `--sites` out"


def why_no_containerd(host: Host) -> str | None:
    """Why no container can be made by containerd on `host`, `None` where one can."""
    if isinstance(host, SshHost):
        return FAR
    try:
        ctr(host, find_socket(host), "version")
    except TareError as error:
        return str(error)
    return None
