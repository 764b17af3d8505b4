"""Images: the only source of a SUT's or a client's bits.

Whatever the source (a recipe, a registry reference, an OCI layout, a saved tar), the result is one
content-addressed root file system and one engine image made from it, so that every deployment of an arm
runs the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tare.sites import Host


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

    `digest`: sha256 over the sorted tree (path, type, mode, owner, content or target; never times).
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


@dataclass(frozen=True)
class Archive:
    """A root file system as one tar file on the host, with the configuration that came with it."""

    tar: str
    config: ImageConfig
    packages: tuple[tuple[str, str], ...] = ()


class ImageSource(Protocol):
    """One way to come by an image: `recipe`, `registry`, `oci`, `tar`."""

    def cache_key(self, reference: str, host: Host) -> str | None:
        """A digest of all that the result depends on, `None` where only fetching can tell."""
        ...

    def fetch(self, reference: str, host: Host, scratch: str) -> Archive:
        """Produce the flattened root file system as a tar under `scratch`. Raises `EnvironmentLacks`."""
        ...
