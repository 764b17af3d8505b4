"""Images from an OCI layout on disk (image-layout.md of the OCI image specification 1.1)."""

from __future__ import annotations

import os
from pathlib import Path

from tare.errors import StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images.digest import file_digest
from tare.images.oci.model import REF_NAME, Descriptor, ImageFile, Manifest, Settings, read_json

_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
}
"""Machine name of uname(2) → architecture name of Go and so of images; others are the same."""
_MAX_NESTING = 4
MAX_LAYERS = 1000
"""Engines take some 127: an image with more is one that names few blobs again and again."""


class OciLayout:
    """`oci:PATH`: a directory with index.json and blobs/. `oci:PATH:TAG`: one of several images in it."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """Digest of the manifest, which covers configuration and layers."""
        del workshop
        folder, tag = _split(reference)
        return _choose_manifest(folder, tag).digest

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Check every blob against its digest before it is used; nothing is copied."""
        del workshop, scratch
        folder, tag = _split(reference)
        manifest = read_json(Manifest, _blob(folder, _choose_manifest(folder, tag)))
        if manifest.config is None or not manifest.layers:
            raise StudyError(f"{folder}: the image has no layers", hint="is it an image, not an artifact?")
        must_not_be_endless(len(manifest.layers), str(folder))
        config = read_json(ImageFile, _blob(folder, manifest.config))
        blobs = {
            layer.digest: _blob(folder, layer) for layer in {each.digest: each for each in manifest.layers}.values()
        }
        return Archive(tuple(blobs[layer.digest] for layer in manifest.layers), config_of(config, str(folder)))


def must_not_be_endless(layers: int, where: str) -> None:
    """Raise `StudyError` for more layers than any image has."""
    if layers > MAX_LAYERS:
        raise StudyError(f"{where}: the image has {layers} layers", hint="do not use this image")


def config_of(image: ImageFile, where: str) -> ImageConfig:
    """Configuration of the image.

    Raises `StudyError` if it is for another machine; `where` names the image in errors.
    """
    wanted = _architecture()
    if image.architecture not in ("", wanted) or image.os not in ("", "linux"):
        raise StudyError(
            f"{where}: the image is for {image.os or 'linux'}/{image.architecture}, this machine is linux/{wanted}",
            hint="fetch it for this machine's platform",
        )
    return ImageConfig() if image.config is None else settings_of(image.config)


def settings_of(given: Settings) -> ImageConfig:
    """The part of an image's configuration that tare uses; a single volume is the data directory."""
    pairs = [line.partition("=") for line in given.env]
    volumes = tuple(given.volumes)
    return ImageConfig(
        entrypoint=given.entrypoint,
        command=given.command,
        env=tuple((name, value) for name, _, value in pairs),
        user=given.user or "",
        workdir=given.workdir or "/",
        data_dir=volumes[0] if len(volumes) == 1 else None,
    )


def is_layout(folder: Path) -> bool:
    """Whether `folder` looks like an OCI layout."""
    return (folder / "index.json").is_file() and (folder / "blobs").is_dir()


def _architecture() -> str:
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def _split(reference: str) -> tuple[Path, str | None]:
    if Path(reference).is_dir():
        return Path(reference), None
    folder, _, tag = reference.rpartition(":")
    return (Path(folder), tag) if folder and Path(folder).is_dir() else (Path(reference), None)


def _choose_manifest(folder: Path, tag: str | None) -> Descriptor:
    if not is_layout(folder):
        raise StudyError(f"{folder} is no OCI layout", hint="it should hold index.json and blobs/")
    index = read_json(Manifest, folder / "index.json")
    for _ in range(_MAX_NESTING):
        chosen = _choose(folder, index.manifests or (), tag)
        index, tag = read_json(Manifest, _blob(folder, chosen)), None
        if index.manifests is None:
            return chosen
    raise StudyError(f"{folder}: image indexes are nested more than {_MAX_NESTING} deep")


def _choose(folder: Path, manifests: tuple[Descriptor, ...], tag: str | None) -> Descriptor:
    """Choose the image with the tag, if given, that fits this machine; an entry may state neither."""
    wanted = _architecture()
    matching = {
        each.digest: each
        for each in manifests
        if tag in (None, each.annotations.get(REF_NAME))
        and each.platform.architecture in ("", wanted)
        and each.platform.os in ("", "linux")
    }
    if len(matching) == 1:
        return next(iter(matching.values()))
    names = sorted({name for each in manifests if (name := each.annotations.get(REF_NAME))})
    what = (
        f"{len(matching)} images of {len(manifests)} are for linux/{wanted}{f' and tagged {tag!r}' if tag else ''}"
    )
    raise StudyError(f"{folder}: {what}", hint=f"name one as oci:PATH:TAG ({', '.join(names) or 'none has a tag'})")


def _blob(folder: Path, descriptor: Descriptor) -> Path:
    path, shown = folder / "blobs" / "sha256" / descriptor.hexadecimal, descriptor.digest[:19]
    if not path.is_file():
        raise StudyError(f"{folder}: the blob {shown} is missing", hint="the layout is not complete")
    size_differs = descriptor.size is not None and path.stat().st_size != descriptor.size
    if size_differs or file_digest(path) != descriptor.hexadecimal:
        raise StudyError(f"{folder}: the blob {shown} is damaged", hint="save the image again")
    return path
