"""Data in a container's own layers: in its writable layer, or in an image layer from which writes copy up.

The data is written to the directories of the engine's overlay while it is not mounted: the upper tree may be
changed then (kernel, filesystems/overlayfs, "Changes to underlying filesystems").
"""

from __future__ import annotations

import contextlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from docker.errors import ImageNotFound

from tare.deployments import Layer, Task
from tare.deployments.container.overlay import Overlay, overlay_of
from tare.deployments.directories import sync_and_evict
from tare.deployments.mounts import must_share_disk
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.engine import labels
from tare.sites.ledger import Kind, Ledger

if TYPE_CHECKING:
    from docker import DockerClient

_COPY_S = 4 * 3600.0
_CALL_S = 60.0
_REPOSITORY = "tare/run"


def fill_layer(host: Host, overlay: Overlay, task: Task, layer: Layer) -> None:
    """Copy the data into the writable layer of a container that has been created but not started."""
    upper = overlay.upper
    must_share_disk(host, upper, layer.source)
    must_have_empty_target(host, task, layer)
    for part in reversed(PurePosixPath(layer.target).parents[:-1]):
        _make_like(host, f"{task.image.rootfs}{part}", f"{upper}{part}")
    target = f"{upper}{layer.target}"
    host.run(["cp", "-a", "--reflink=auto", "-T", "--", layer.source, target], timeout_s=_COPY_S)
    sync_and_evict(host, target, warmed=layer.warmed)


def image_with(engine: DockerClient, host: Host, ledger: Ledger, task: Task, layer: Layer) -> str:
    """Make an image for this task with the data as the topmost layer of the task's image; return its reference."""
    reference = image_of(task)
    maker = f"{task.name}-data"
    ledger.note(Kind.CONTAINER, maker, host=host.name)
    ledger.note(Kind.IMAGE, reference, host=host.name)
    container = engine.containers.create(
        str(task.image.engine_id),
        command=["-"],
        name=maker,
        labels=labels(task.cgroup_parent, ledger.owner_on(host.name)),
    )
    try:
        fill_layer(host, overlay_of(engine, host, container), task, layer)
        container.commit(repository=_REPOSITORY, tag=task.name)
    finally:
        container.remove(v=True, force=True)
        ledger.forget(Kind.CONTAINER, maker, host=host.name)
    return reference


def set_page_cache(host: Host, overlay: Overlay, task: Task, layer: Layer) -> None:
    """Set the page cache as asked for the data in the image's topmost layer, which the engine has just unpacked."""
    below = [f"{each}{layer.target}" for each in overlay.lower]
    there = [path for path in below if host.run(["test", "-d", path], timeout_s=_CALL_S, check=False).code == 0]
    if not there:
        raise RunFailed(f"{task.name}: no layer below {layer.target} holds the data, so nothing can be copied up")
    sync_and_evict(host, there[0], warmed=layer.warmed)


def drop_image(engine: DockerClient, host: Host, ledger: Ledger, task: Task) -> None:
    """Remove the image that `image_with` made; it may be gone already."""
    reference = image_of(task)
    with contextlib.suppress(ImageNotFound):
        engine.images.remove(reference, force=True, noprune=True)
    ledger.forget(Kind.IMAGE, reference, host=host.name)


def image_of(task: Task) -> str:
    """Reference of a task's own image."""
    return f"{_REPOSITORY}:{task.name}"


def must_have_empty_target(host: Host, task: Task, layer: Layer) -> None:
    """Raise `EnvironmentLacks` if the image has files in the target: a layer would mix them with the data."""
    argv = ["find", f"{task.image.rootfs}{layer.target}", "-mindepth", "1", "-print", "-quit"]
    if (listing := host.run(argv, timeout_s=_CALL_S, check=False)).stdout:
        raise EnvironmentLacks(
            f"the image has files of its own in {layer.target} ({listing.text.strip()}): `layer` would mix them "
            "with the data",
            hint="use another storage, or an image whose data directory is empty",
        )


def _make_like(host: Host, model: str, target: str) -> None:
    """Make a directory with the owner and mode of the image's one: the upper directory is the one that is seen."""
    host.run(["mkdir", "-p", "--", target], timeout_s=_CALL_S)
    if host.run(["test", "-d", model], timeout_s=_CALL_S, check=False).code == 0:
        host.run(["chown", f"--reference={model}", "--", target], timeout_s=_CALL_S)
        host.run(["chmod", f"--reference={model}", "--", target], timeout_s=_CALL_S)
