"""Data in a container's own layers: in the writable one, or in one of its image, from which writes copy up.

Put there through the directories of which the engine's overlay is made, while it is not mounted: changes of the
upper tree are allowed then (kernel, filesystems/overlayfs, "Changes to underlying filesystems").
"""

from __future__ import annotations

import contextlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from docker.errors import ImageNotFound

from tare.deployments import Layer, Task
from tare.deployments.directories import sync_and_evict
from tare.deployments.mounts import must_share_disk
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.engine import labels
from tare.sites.ledger import Kind, Ledger

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as EngineContainer

_COPY_S = 4 * 3600.0
_CALL_S = 60.0
_REPOSITORY = "tare/run"


def fill(host: Host, container: EngineContainer, task: Task, layer: Layer) -> None:
    """Put the data into the writable layer of a container that was made and has not been started."""
    upper = _directory(container, "UpperDir")
    must_share_disk(host, upper, layer.source)
    must_hide_nothing(host, task, layer)
    for part in reversed(PurePosixPath(layer.target).parents[:-1]):
        _like(host, f"{task.image.rootfs}{part}", f"{upper}{part}")
    target = f"{upper}{layer.target}"
    host.run(["cp", "-a", "--reflink=auto", "-T", "--", layer.source, target], timeout_s=_COPY_S)
    sync_and_evict(host, target, warmed=layer.warmed)


def image_with(engine: DockerClient, host: Host, ledger: Ledger, task: Task, layer: Layer) -> str:
    """The task's image with the data as its topmost layer, for this task alone; its reference."""
    reference = image_of(task)
    maker = f"{task.name}-data"
    ledger.note(Kind.CONTAINER, maker, host=host.name)
    ledger.note(Kind.IMAGE, reference, host=host.name)
    container = engine.containers.create(
        str(task.image.engine_id), command=["-"], name=maker, labels=labels(task.cgroup_parent)
    )
    try:
        fill(host, container, task, layer)
        container.commit(repository=_REPOSITORY, tag=task.name)
    finally:
        container.remove(v=True, force=True)
        ledger.forget(Kind.CONTAINER, maker, host=host.name)
    return reference


def settle_below(host: Host, container: EngineContainer, layer: Layer) -> None:
    """The page cache as asked over the data in the image's topmost layer, which the engine has just unpacked."""
    topmost = _directory(container, "LowerDir").split(":")
    below = [f"{each}{layer.target}" for each in topmost]
    there = [path for path in below if host.run(["test", "-d", path], timeout_s=_CALL_S, check=False).code == 0]
    if not there:
        raise RunFailed(f"no layer below {layer.target} holds the data, so nothing can be copied up")
    sync_and_evict(host, there[0], warmed=layer.warmed)


def drop_image(engine: DockerClient, host: Host, ledger: Ledger, task: Task) -> None:
    """Remove what `image_with` made; nothing to do is no error."""
    reference = image_of(task)
    with contextlib.suppress(ImageNotFound):
        engine.images.remove(reference, force=True, noprune=True)
    ledger.forget(Kind.IMAGE, reference, host=host.name)


def image_of(task: Task) -> str:
    """The reference of a task's own image."""
    return f"{_REPOSITORY}:{task.name}"


def _directory(container: EngineContainer, which: str) -> str:
    container.reload()
    driver = container.attrs.get("GraphDriver") or {}
    directory = (driver.get("Data") or {}).get(which)
    if not directory:
        raise EnvironmentLacks(
            "storage `layer` needs an engine with an overlay of directories; this one uses "
            f"{driver.get('Name') or 'another snapshotter'}",
            hint="use the storage driver overlay2, or another storage",
        )
    return str(directory)


def must_hide_nothing(host: Host, task: Task, layer: Layer) -> None:
    """A mount would hide what the image has there; a layer would show it among the data."""
    argv = ["find", f"{task.image.rootfs}{layer.target}", "-mindepth", "1", "-print", "-quit"]
    if (listing := host.run(argv, timeout_s=_CALL_S, check=False)).stdout:
        raise EnvironmentLacks(
            f"the image has files of its own in {layer.target} ({listing.text.strip()}): `layer` would mix them "
            "with the data",
            hint="use another storage, or an image whose data directory is empty",
        )


def _like(host: Host, model: str, target: str) -> None:
    """A directory with owner and mode of the one in the image below, as the upper one is what is seen."""
    host.run(["mkdir", "-p", "--", target], timeout_s=_CALL_S)
    if host.run(["test", "-d", model], timeout_s=_CALL_S, check=False).code == 0:
        host.run(["chown", f"--reference={model}", "--", target], timeout_s=_CALL_S)
        host.run(["chmod", f"--reference={model}", "--", target], timeout_s=_CALL_S)
