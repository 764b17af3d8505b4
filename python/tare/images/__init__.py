"""Images: the only source of a SUT's or a client's bits.

Whatever the source (a recipe, a registry reference, an OCI layout, a saved tar), the result is one
content-addressed root file system and one engine image made from it, so that every deployment of an arm
runs the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tare.images.bases import Bases
from tare.sites import Host

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class ImageConfig:
    """What an engine would apply by default: the part of the OCI image configuration that tare honours."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    user: str = ""
    workdir: str = "/"
    data_dir: str | None = None


@dataclass(frozen=True)
class Image:
    """An image ready for every deployment of one host.

    `digest`: sha256 over configuration and sorted tree (path, type, mode, owner, content or target; never times).
    `rootfs`: absolute path of the unpacked tree on the host, never written to once made.
    `engine_id`: id of the image in the engine, `None` where no engine was asked for.
    """

    reference: str
    digest: str
    rootfs: str
    engine_id: str | None
    config: ImageConfig
    packages: tuple[tuple[str, str], ...] = ()
    """Name and version of what the root file system was made from, where the source can tell."""
    labels: tuple[tuple[str, str], ...] = field(default=())
    owner: str | None = None
    """`UID:GID` of the user that its programs run as, by its own accounts; `None` for root."""
    listed: bool = False
    """Whether owners and modes are in the listing of its tree only, as root did not unpack it: nothing bare."""


@dataclass(frozen=True)
class Archive:
    """Layers as tar files (plain or gzip), lowest first, with the configuration that came with them.

    A layer may hold whiteouts, as the OCI image specification (layer.md) defines them.
    """

    layers: tuple[Path, ...]
    config: ImageConfig


@dataclass(frozen=True)
class Workshop:
    """What a source works with. `engine` is `None` where none answers; `TARE_HOME` lies on `host`.

    `bases`: `None` where nothing is kept but the image.
    """

    host: Host
    engine: DockerClient | None
    bases: Bases | None = None


class ImageSource(Protocol):
    """One way to come by an image."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """A digest of all that the result depends on, `None` where only fetching can tell."""
        ...

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Bring the layers to `scratch`. Raises `EnvironmentLacks`, or `StudyError` for a broken image."""
        ...
