"""containerd's own client `ctr`: find containerd's socket, and run one command."""

from __future__ import annotations

import os

from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host

ADDRESS = "CONTAINERD_ADDRESS"
"""Environment variable through which `ctr` itself takes another socket."""
SOCKETS = ("/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock")
"""Sockets of a containerd of its own, and of one that dockerd starts if it finds none."""
KUBELETS = "k8s.io"
"""containerd's namespace of kubelet's images and pods."""
CALL_S = 60.0
_QUICK_S = 10.0
_HINT = "tare needs root there, and `ctr` from the package containerd"


def ctr(host: Host, socket: str, *words: str, namespace: str = KUBELETS, timeout_s: float = CALL_S) -> str:
    """Run `ctr` and return its output. Raises `EnvironmentLacks` if `ctr` is missing or fails."""
    argv = ["ctr", "--address", socket, "--namespace", namespace, *words]
    try:
        return host.run(argv, timeout_s=timeout_s).text
    except RunFailed as error:
        raise EnvironmentLacks(
            f"containerd at {socket} on {host.name} cannot be used: {error.what}", hint=_HINT
        ) from error


def find_socket(host: Host) -> str:
    """Find containerd's socket: `CONTAINERD_ADDRESS`, else the first known socket that exists."""
    named = os.environ.get(ADDRESS)
    for each in (named,) if named else SOCKETS:
        if is_there(host, each):
            return each
    raise EnvironmentLacks(
        f"no containerd runs on {host.name}: {named or ' and '.join(SOCKETS)} is not a socket",
        hint=f"start containerd or Docker, or name another socket in {ADDRESS}",
    )


def is_there(host: Host, socket: str) -> bool:
    """Whether the socket exists; containerd may still not answer."""
    return host.run(["test", "-S", socket], timeout_s=_QUICK_S, check=False).code == 0
