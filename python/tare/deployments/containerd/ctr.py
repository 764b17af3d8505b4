"""containerd's own client, `ctr`: where containerd answers, and one call of it."""

from __future__ import annotations

import os

from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host

ADDRESS = "CONTAINERD_ADDRESS"
"""The variable by which `ctr` itself is told of another socket."""
SOCKETS = ("/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock")
"""Where containerd answers: by itself, and as dockerd starts one that it finds nowhere."""
KUBELETS = "k8s.io"
"""Of containerd's namespaces, that of kubelet's images and pods."""
CALL_S = 60.0
_QUICK_S = 10.0
_HINT = "tare needs root there, and `ctr` of the package containerd"


def ctr(host: Host, socket: str, *words: str, namespace: str = KUBELETS, timeout_s: float = CALL_S) -> str:
    """What it prints. Raises `EnvironmentLacks` where it is missing or refused."""
    argv = ["ctr", "--address", socket, "--namespace", namespace, *words]
    try:
        return host.run(argv, timeout_s=timeout_s).text
    except RunFailed as error:
        raise EnvironmentLacks(
            f"containerd at {socket} on {host.name} cannot be spoken to: {error.what}", hint=_HINT
        ) from error


def find_socket(host: Host) -> str:
    """Where containerd answers: `CONTAINERD_ADDRESS`, else the first socket that is there."""
    named = os.environ.get(ADDRESS)
    for each in (named,) if named else SOCKETS:
        if is_there(host, each):
            return each
    raise EnvironmentLacks(
        f"no containerd runs on {host.name}: {named or ' and '.join(SOCKETS)} is no socket",
        hint=f"start containerd or Docker, or name another socket in {ADDRESS}",
    )


def is_there(host: Host, socket: str) -> bool:
    """Whether the socket is there; containerd may not answer all the same."""
    return host.run(["test", "-S", socket], timeout_s=_QUICK_S, check=False).code == 0
