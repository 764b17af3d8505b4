"""Run a program once in a container, from an image made for this call; both are removed afterwards."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from docker.errors import DockerException
from docker.types import Ulimit
from requests.exceptions import RequestException

from tare.deployments import Limits
from tare.deployments.rlimits import ceilings, rlimits
from tare.errors import RunFailed
from tare.sites import Completed, Host
from tare.sites.engine import labels
from tare.sites.local import own_process

if TYPE_CHECKING:
    from docker import DockerClient

_DIGITS = 12


def in_container(  # noqa: PLR0913 - a program and its surroundings
    host: Host,
    engine: DockerClient,
    image: bytes,
    argv: Sequence[str],
    *,
    prefix: str,
    timeout_s: float,
    held: Mapping[str, int] | None = None,
    **given: Any,
) -> Completed:
    """Run a program to its end; return its exit code and both outputs.

    `image`: a tar of a root file system (see `tree`). `prefix`: start of the container's name. `held`: upper bounds
    of the engine's own resource limits. `given`: further options of the engine's client. Raises `RunFailed` if the
    engine does not accept the image, and any error of the client.
    """
    try:
        answer = engine.api.import_image_from_data(image)
    except (DockerException, RequestException) as error:
        raise RunFailed(f"the engine cannot load the image: {error}") from error
    engine_id = next((word for line in answer.splitlines() if (word := json.loads(line).get("status", ""))), "")
    if not engine_id.startswith("sha256:"):
        raise RunFailed(f"the engine cannot load the image: {answer.strip()[-160:] or 'it answered nothing'}")
    wanted = rlimits(Limits(), {**ceilings(host), **(held or {})})
    name = f"{prefix}-{uuid4().hex[:_DIGITS]}"
    try:
        container = engine.containers.create(
            engine_id,
            entrypoint=list(argv[:1]),
            command=list(argv[1:]),
            name=name,
            labels=labels(name, own_process()),
            ulimits=[Ulimit(name=each, soft=limit.soft, hard=limit.hard) for each, limit in wanted.items()],
            **given,
        )
        try:
            container.start()
            code = int(container.wait(timeout=timeout_s)["StatusCode"])
            stdout, stderr = (bytes(container.logs(stdout=out, stderr=not out)) for out in (True, False))
        finally:
            container.remove(v=True, force=True)
    finally:
        with suppress(DockerException, RequestException):
            engine.images.remove(engine_id, force=True)
    return Completed(tuple(argv), code, stdout, stderr)


def tree(
    files: Mapping[str, bytes],
    mode: int,
    *,
    folders: Mapping[str, int] | None = None,
    links: Mapping[str, str] | None = None,
) -> bytes:
    """Pack a root file system as a tar: files with contents, folders with modes, links with targets."""
    packed = io.BytesIO()
    with tarfile.TarFile(fileobj=packed, mode="w") as tar:
        for path, own in (folders or {}).items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, own
            tar.addfile(entry)
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
