"""The options by which an engine confines a container's program."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tare.deployments import Confinement
from tare.errors import EnvironmentLacks
from tare.sites import Host


def security_options(host: Host, asked: Confinement, *, of_podman: bool) -> dict[str, Any]:
    """Options of an engine's call, only if asked for. Docker takes a profile's content, Podman its file name."""
    given = dict[str, Any]()
    options = ["no-new-privileges"] if asked.no_new_privileges else []
    if asked.seccomp != "default":
        filtered = asked.seccomp
        if filtered != "unconfined":
            content = _profile(host, asked)
            filtered = filtered if of_podman else content
        options.append(f"seccomp={filtered}")
    if options:
        given["security_opt"] = options
    if asked.capabilities != "default":
        given["cap_add" if asked.capabilities == "all" else "cap_drop"] = ["ALL"]
    return given


def _profile(host: Host, asked: Confinement) -> str:
    """Read a seccomp profile and put it on one line, as the engine's API requires."""
    path, raw = asked.seccomp, host.read(asked.seccomp)
    if raw is not None and asked.seccomp_sha256 not in {None, hashlib.sha256(raw).hexdigest()}:
        raise EnvironmentLacks(
            f"the seccomp profile {path} on {host.name} is not the one that was read with the study",
            hint="run the study again into another store",
        )
    try:
        return json.dumps(json.loads(raw or b""))
    except ValueError as error:
        raise EnvironmentLacks(
            f"the seccomp profile {path} is missing or not JSON", hint="confinement.seccomp names it"
        ) from error
