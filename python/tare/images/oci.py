"""Images from an OCI layout on disk (image-layout.md of the OCI image specification 1.1)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tare.errors import StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images.digest import file_digest

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MAX_NESTING = 4

Json = Mapping[str, Any]


class OciLayout:
    """`oci:PATH` is a directory with index.json and blobs/; `oci:PATH:TAG` one image of several."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """The manifest's digest, which covers configuration and layers."""
        del workshop
        folder, tag = _split(reference)
        return str(_manifest_descriptor(folder, tag)["digest"])

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Every blob is checked against its digest before it is used; nothing is copied."""
        del workshop, scratch
        folder, tag = _split(reference)
        return read_layout(folder, _manifest_descriptor(folder, tag))


def read_layout(folder: Path, descriptor: Json) -> Archive:
    """Configuration and layers of the manifest that `descriptor` points to."""
    manifest = _json(_blob(folder, descriptor))
    layers = []
    for layer in manifest.get("layers", ()):
        media = str(layer.get("mediaType", ""))
        if media.endswith("zstd"):
            raise StudyError(f"{folder}: a layer is compressed with zstd", hint="save the image with gzip layers")
        layers.append(_blob(folder, layer))
    if not layers:
        raise StudyError(f"{folder}: the image has no layers", hint="is it an image, not an artifact?")
    return Archive(tuple(layers), config_of(_json(_blob(folder, manifest["config"]))))


def config_of(image: Json) -> ImageConfig:
    """The part of an OCI image configuration (config.md) that tare honours; one volume is the data directory."""
    config = image.get("config") or {}
    pairs = [str(line).partition("=") for line in config.get("Env") or ()]
    volumes = sorted(config.get("Volumes") or ())
    return ImageConfig(
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        env=tuple((name, value) for name, _, value in pairs),
        user=config.get("User") or "",
        workdir=config.get("WorkingDir") or "/",
        data_dir=volumes[0] if len(volumes) == 1 else None,
    )


def is_layout(folder: Path) -> bool:
    """Whether `folder` looks like an OCI layout."""
    return (folder / "index.json").is_file() and (folder / "blobs").is_dir()


def _split(reference: str) -> tuple[Path, str | None]:
    if Path(reference).is_dir():
        return Path(reference), None
    folder, _, tag = reference.rpartition(":")
    return (Path(folder), tag) if folder and Path(folder).is_dir() else (Path(reference), None)


def _manifest_descriptor(folder: Path, tag: str | None) -> Json:
    if not is_layout(folder):
        raise StudyError(f"{folder} is no OCI layout", hint="it should hold index.json and blobs/")
    index = _json(folder / "index.json")
    for _ in range(_MAX_NESTING):
        descriptor = _choose(folder, index.get("manifests", ()), tag)
        if descriptor.get("mediaType") not in _INDEXES:
            return descriptor
        index, tag = _json(_blob(folder, descriptor)), None
    raise StudyError(f"{folder}: image indexes are nested more than {_MAX_NESTING} deep")


def _choose(folder: Path, manifests: Any, tag: str | None) -> Json:
    wanted = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    found: list[Json] = []
    for each in manifests:
        name = (each.get("annotations") or {}).get("org.opencontainers.image.ref.name")
        architecture = (each.get("platform") or {}).get("architecture", wanted)
        if tag in (None, name) and architecture == wanted:
            found.append(each)
    if len(found) == 1:
        return found[0]
    what = f"tag {tag!r} and architecture {wanted}" if tag else f"architecture {wanted}"
    raise StudyError(f"{folder}: {len(found)} images match {what}", hint="name one as oci:PATH:TAG")


def _blob(folder: Path, descriptor: Json) -> Path:
    algorithm, _, value = str(descriptor.get("digest", "")).partition(":")
    if algorithm != "sha256" or len(value) != hashlib.sha256().digest_size * 2 or not value.isalnum():
        raise StudyError(f"{folder}: {descriptor.get('digest')!r} is no sha256 digest")
    path = folder / "blobs" / "sha256" / value
    if not path.is_file():
        raise StudyError(f"{folder}: the blob sha256:{value[:12]} is missing", hint="the layout is not complete")
    if file_digest(path) != value:
        raise StudyError(f"{folder}: the blob sha256:{value[:12]} is damaged", hint="save the image again")
    return path


def _json(path: Path) -> Json:
    try:
        tree = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} is not readable as JSON: {error}") from error
    if not isinstance(tree, dict):
        raise StudyError(f"{path} holds no JSON object")
    return tree
