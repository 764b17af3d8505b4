"""The container engine of a host: Docker Engine, or Podman behind its Docker-compatible socket."""

from __future__ import annotations

import os
import socket

import docker
from docker.errors import DockerException

from tare.errors import EnvironmentLacks

LABEL = "org.tare-bench.owner"
"""Every container, network and image that tare makes carries this label; its value is the owner's id."""


_DEFAULT = "unix:///var/run/docker.sock"
_KNOCK_S = 5.0


def connect(url: str | None = None, *, timeout_s: float = 60.0) -> docker.DockerClient:
    """A client of the engine at `url` (default: DOCKER_HOST, else the local socket) that has answered once."""
    address = url or os.environ.get("DOCKER_HOST") or _DEFAULT
    try:
        _knock(address)
        client = (
            docker.DockerClient(base_url=url, timeout=int(timeout_s))
            if url
            else docker.from_env(timeout=int(timeout_s))
        )
        client.ping()
    except PermissionError as error:
        raise EnvironmentLacks(
            f"this user may not use the container engine at {address}",
            hint="run tare with sudo, or have the user made a member of the socket's group (it is as good as root)",
        ) from error
    except (DockerException, OSError) as error:
        raise EnvironmentLacks(
            f"no container engine answers at {address}: {error}",
            hint="start Docker (or set DOCKER_HOST to Podman's socket) and see `tare doctor`",
        ) from error
    return client


def _knock(url: str) -> None:
    """Try a Unix socket first: where nobody listens, the `docker` package would leave its own socket open."""
    scheme, mid, path = url.partition("://")
    if mid and scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
            knocking.settimeout(_KNOCK_S)
            knocking.connect(path)
