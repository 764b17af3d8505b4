"""Images: the only source of a SUT's or a client's programs and files.

Whatever the source (a recipe, a registry reference, an OCI layout, a saved tar), the result is one
content-addressed root file system and one engine image made from it, so that every deployment of an arm runs the
same bits.
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
    """Defaults that an engine would apply: the part of the OCI image configuration that tare uses."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    user: str = ""
    workdir: str = "/"
    data_dir: str | None = None


@dataclass(frozen=True)
class Image:
    """An image that is ready for every deployment of one host.

    `digest`: sha256 over the configuration and the sorted tree (path, type, mode, owner, content or target; never
    times). `rootfs`: absolute path of the unpacked tree on the host, which is never written to. `engine_id`: ID of
    the image in the engine; `None` if no engine was asked for.
    """

    reference: str
    digest: str
    rootfs: str
    engine_id: str | None
    config: ImageConfig
    packages: tuple[tuple[str, str], ...] = ()
    """(name, version) of the packages that the root file system was made from, if the source knows them."""
    labels: tuple[tuple[str, str], ...] = field(default=())
    owner: str | None = None
    """`UID:GID` of the user that its programs run as, from the image's own accounts; `None` for root."""
    listed: bool = False
    """Whether owners and modes are only in the listing of the tree, as it was not unpacked by root: no bare tasks
    then."""


@dataclass(frozen=True)
class Archive:
    """Layers as tar files (plain or gzip), lowest first, with their configuration.

    A layer may hold whiteouts, as the OCI image specification (layer.md) defines them.
    """

    layers: tuple[Path, ...]
    config: ImageConfig


@dataclass(frozen=True)
class Workshop:
    """Tools that a source works with. `engine`: `None` if none answers; `TARE_HOME` lies on `host`.

    `bases`: `None` if only the image is kept.
    """

    host: Host
    engine: DockerClient | None
    bases: Bases | None = None


class ImageSource(Protocol):
    """One way to obtain an image."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """A digest of everything that the result depends on; `None` if only fetching can tell."""
        ...

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Bring the layers to `scratch`. Raises `EnvironmentLacks`, or `StudyError` for a broken image."""
        ...
