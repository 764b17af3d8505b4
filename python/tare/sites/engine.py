"""The container engine of a host: Docker Engine, or Podman behind its Docker-compatible socket."""

from __future__ import annotations

import docker
from docker.errors import DockerException

from tare.errors import EnvironmentLacks

LABEL = "org.tare-bench.owner"
"""Every container, network and image that tare makes carries this label; its value is the owner's id."""


def connect(url: str | None = None, *, timeout_s: float = 60.0) -> docker.DockerClient:
    """A client of the engine at `url` (default: DOCKER_HOST, else the local socket) that has answered once."""
    try:
        client = (
            docker.DockerClient(base_url=url, timeout=int(timeout_s))
            if url
            else docker.from_env(timeout=int(timeout_s))
        )
        client.ping()
    except (DockerException, OSError) as error:
        raise EnvironmentLacks(
            f"no container engine answers at {url or 'the default socket'}: {error}",
            hint="start Docker (or set DOCKER_HOST to Podman's socket) and see `tare doctor`",
        ) from error
    return client
