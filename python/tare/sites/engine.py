"""The container engine of a host (Docker, or Podman behind its Docker-compatible socket): connection and facts."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import docker
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks
from tare.record.engine_facts import EngineFacts
from tare.sites import Host, Process
from tare.sites.marks import LABEL, RUN_LABEL
from tare.sites.process import to_ident
from tare.sites.reading import text

_DEFAULT = "unix:///var/run/docker.sock"
_KNOCK_S = 5.0
_NO_CONTAINERD = re.compile(r"containerd\.sock|desc = .?transport|: unavailable$")
"""The status `Unavailable` of gRPC, in words of grpc-go and of containerd's package errdefs."""


def labels(parent: str, owner: Process) -> dict[str, str]:
    """Labels that mark a container or network as made by a tare or agent, and as part of a run."""
    return {LABEL: to_ident(owner), RUN_LABEL: parent}


class Client(docker.DockerClient):
    """A client that remembers whether its engine ever listed a containerd in /version.

    Docker before 19.03, Podman and some vendors' builds never do (moby, daemon/info_unix.go).
    """

    had_containerd = False

    def version(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What the engine says of itself, as the `docker` package returns it."""
        answer = super().version(*args, **kwargs)
        self.had_containerd = self.had_containerd or _lists_containerd(answer)
        return answer


def connect(url: str | None = None, *, timeout_s: float = 60.0) -> docker.DockerClient:
    """A client of the engine at `url` (default: DOCKER_HOST, else the local socket) that has answered once."""
    address = url or os.environ.get("DOCKER_HOST") or _DEFAULT
    try:
        _must_listen(address)
        client = Client(base_url=url, timeout=int(timeout_s)) if url else Client.from_env(timeout=int(timeout_s))
        client.version()
    except PermissionError as error:
        raise EnvironmentLacks(
            f"this user may not use the container engine at {address}",
            hint="run tare with sudo, or add the user to the socket's group (equivalent to root)",
        ) from error
    except (DockerException, OSError) as error:
        raise EnvironmentLacks(
            f"no container engine answers at {address}: {error}",
            hint="start Docker (or set DOCKER_HOST to Podman's socket) and see `tare doctor`",
        ) from error
    return client


def why_away(client: docker.DockerClient) -> str | None:
    """Why an engine that answers can start no container now; `None` if it can.

    dockerd restarts a containerd that ended, and reaches it again after about 12 s. An engine that never listed one
    is believed to be well. Raises the errors of the `docker` package if the engine does not answer.
    """
    client.api.close()  # an engine that shuts down still answers on existing connections
    there = _lists_containerd(client.version())
    had = isinstance(client, Client) and client.had_containerd
    return "its containerd does not answer" if had and not there else None


def _lists_containerd(version: Mapping[str, Any]) -> bool:
    return any(part.get("Name") == "containerd" for part in version.get("Components") or ())


def names_no_containerd(words: str) -> bool:
    """Whether an engine says by these words that its containerd does not answer."""
    return _NO_CONTAINERD.search(words.strip()) is not None


def is_no_answer(error: BaseException) -> bool:
    """Whether a call failed because the engine, or its containerd, does not answer."""
    if isinstance(error, APIError):
        return names_no_containerd(in_words(error))
    return isinstance(error, RequestException)


def in_words(error: BaseException) -> str:
    """An error of an engine's client in words for users: the engine's explanation, or the system's error.

    `requests` wraps a broken connection in two more errors, whose text shows Python tuples.
    """
    explanation = getattr(error, "explanation", None)
    return str(explanation or _by_system(error) or error)


def _by_system(error: BaseException) -> str | None:
    """The innermost text of errno(3), or of a connection that was closed, in an error and its causes."""
    inner = (each for each in error.args if isinstance(each, BaseException))
    reason = next((words for each in inner if (words := _by_system(each)) is not None), None)
    if reason is None and isinstance(error, OSError) and isinstance(error.strerror, str):
        return error.strerror
    return str(error) if reason is None and isinstance(error, ConnectionError) else reason


def _must_listen(url: str) -> None:
    """Try a Unix socket first: if nobody listens, the `docker` package would leave its own socket open."""
    scheme, mid, path = url.partition("://")
    if mid and scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
            knocking.settimeout(_KNOCK_S)
            knocking.connect(path)


_PID_FILES = ("/run/docker.pid", "/run/docker-ssd.pid", "/run/tare/dockerd.pid")
_CONFIG = "/etc/docker/daemon.json"


def engine_facts(client: docker.DockerClient, host: Host | None = None) -> EngineFacts:
    """Read the facts that the engine reports.

    `host`: the machine that the engine runs on. Without it, or if the engine is reached over a network, facts that
    only its process shows are `None`. Raises the errors of the `docker` package if the engine stops answering.
    """
    version, info = client.version(), client.info()
    parts = {part.get("Name"): part.get("Version") for part in version.get("Components") or ()}
    status = dict(pair for pair in info.get("DriverStatus") or () if len(pair) == 2)
    security = tuple(info.get("SecurityOptions") or ())
    podman = "Podman Engine" in parts
    own = libpod_info(client) if podman else {}
    controllers = _at(own, "host", "cgroupControllers")
    proxy, told_by = _userland_proxy(client, None if podman else host)
    return EngineFacts(
        engine="podman" if podman else "docker",
        engine_version=parts.get("Podman Engine") if podman else version.get("Version"),
        engine_api_version=version.get("ApiVersion"),
        engine_components=parts,
        engine_storage_driver=info.get("Driver"),
        engine_storage_status=status,
        engine_image_store=_image_store(podman=podman, status=status),
        engine_data_root=info.get("DockerRootDir"),
        engine_cgroup_driver=info.get("CgroupDriver"),
        engine_cgroup_version=info.get("CgroupVersion"),
        engine_runtimes=tuple(sorted(info.get("Runtimes") or ())),
        engine_default_runtime=info.get("DefaultRuntime"),
        engine_security=security,
        engine_rootless=any("rootless" in option for option in security) or _rootless(own),
        engine_id_maps=_at(own, "host", "idMappings") or None,
        engine_storage_program=_at(own, "store", "graphOptions", "overlay.mount_program", "Executable"),
        engine_cgroup_controllers=controllers and tuple(controllers),
        engine_user_network=_at(own, "host", "slirp4netns", "version"),
        engine_live_restore=info.get("LiveRestoreEnabled"),
        engine_firewall=(info.get("FirewallBackend") or {}).get("Driver"),
        engine_logging_driver=info.get("LoggingDriver"),
        engine_containers_running=info.get("ContainersRunning"),
        engine_warnings=tuple(info.get("Warnings") or ()),
        engine_userland_proxy=proxy,
        engine_userland_proxy_from=told_by,
    )


_LIBPOD = "v4.0.0/libpod"
"""Oldest version of Podman's own API that its releases 4 and 5 both accept."""


def libpod_url(client: docker.DockerClient, path: str) -> str:
    """URL in Podman's own API, at the address of its Docker-compatible one."""
    return f"{client.api.base_url}/{_LIBPOD}/{path}"


def libpod_info(client: docker.DockerClient) -> Mapping[str, Any]:
    """Facts that only Podman's own API reports, such as that it is rootless; empty if it does not answer."""
    answer = client.api.get(libpod_url(client, "info"), timeout=client.api.timeout)
    described = answer.json() if answer.ok else {}
    return described if isinstance(described, dict) else {}


def _rootless(own: Mapping[str, Any]) -> bool:
    return bool(_at(own, "host", "security", "rootless"))


def _at(tree: Mapping[str, Any], *keys: str) -> Any:
    """Value at a path of keys; `None` if the path ends before."""
    value: Any = tree
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _image_store(*, podman: bool, status: Mapping[str, str]) -> str | None:
    """Since Docker 29, containerd may hold the images (driver-type io.containerd.snapshotter.v1)."""
    if podman:
        return None
    return "containerd" if "snapshotter" in status.get("driver-type", "") else "graphdriver"


def _userland_proxy(client: docker.DockerClient, host: Host | None) -> tuple[bool | None, str | None]:
    """Return whether docker-proxy carries published ports, and what says so: argument, configuration, or default.

    The API does not report it. Docker refuses to start if both argument and configuration set it.
    """
    argv = None if host is None or not _local(client) else _daemon_argv(host)
    if host is None or argv is None:
        return None, None
    for word in argv:
        name, _, value = word.lstrip("-").partition("=")
        if name == "userland-proxy":
            return value != "false", "argument"
    try:
        configured = json.loads(text(host, _option(argv, "config-file") or _CONFIG) or "{}").get("userland-proxy")
    except (ValueError, AttributeError):
        return None, None
    return (True, "default") if configured is None else (bool(configured), "configuration")


def _local(client: docker.DockerClient) -> bool:
    """Whether the engine is at a Unix socket, to which the `docker` package gives this base address."""
    return client.api.base_url.startswith("http+docker://localhost")


def _daemon_argv(host: Host) -> Sequence[str] | None:
    """Arguments of the running dockerd; `None` if it cannot be found."""
    for path in _PID_FILES:
        pid = text(host, path)
        words = (text(host, f"/proc/{pid}/cmdline") or "").split("\0") if pid and pid.isdecimal() else [""]
        if words[0].rpartition("/")[2] == "dockerd":
            return words
    return None


def _option(argv: Sequence[str], name: str) -> str | None:
    """Value of `--name=VALUE` or `--name VALUE`."""
    for position, word in enumerate(argv):
        key, mid, value = word.lstrip("-").partition("=")
        if key == name and word.startswith("-"):
            return value if mid else next(iter(argv[position + 1 :]), None)
    return None
