"""Images from a tar file: what `docker save` writes, an OCI layout in a tar, or a plain root file system."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tare.errors import StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images.digest import file_digest
from tare.images.oci import OciLayout, config_of, is_layout
from tare.images.unpack import unpack

_MANIFEST = "manifest.json"


class SavedTar:
    """`tar:PATH`."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """The file's content."""
        del workshop
        return file_digest(_existing(reference))

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Tell the three kinds apart by what the tar holds, not by its name."""
        return open_saved(_existing(reference), workshop, scratch)


def open_saved(path: Path, workshop: Workshop, scratch: Path) -> Archive:
    """Unpack the tar's files into `scratch` and read them as what they are."""
    try:
        with tarfile.open(path) as tar:
            names = {name.removeprefix("./") for name in tar.getnames()}
    except (tarfile.TarError, EOFError, OSError) as error:
        raise StudyError(f"{path} is no whole tar archive: {error}") from error
    if _MANIFEST not in names and "index.json" not in names:
        return Archive((path,), ImageConfig())
    folder = scratch / "saved"
    folder.mkdir()
    unpack([path], folder)
    if (folder / _MANIFEST).is_file():
        return _docker_archive(folder, path)
    if is_layout(folder):
        return OciLayout().fetch(str(folder), workshop, scratch)
    raise StudyError(f"{path} holds neither what `docker save` writes nor an OCI layout")


def _docker_archive(folder: Path, path: Path) -> Archive:
    """manifest.json names the configuration and the layers, lowest first (moby, image/spec)."""
    try:
        manifests = json.loads((folder / _MANIFEST).read_bytes())
        if len(manifests) != 1:
            raise StudyError(f"{path} holds {len(manifests)} images", hint="save one image to a file")
        config = json.loads(_inside(folder, manifests[0]["Config"]).read_bytes())
        layers = tuple(_inside(folder, name) for name in manifests[0]["Layers"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"{path}: its manifest.json is not as `docker save` writes it: {error}") from error
    return Archive(layers, config_of(config))


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise StudyError(f"the saved image has no file {name!r}", hint="the tar is not complete")
    return path


def _existing(reference: str) -> Path:
    path = Path(reference)
    if not path.is_file():
        raise StudyError(f"there is no file {reference}", hint="`docker save IMAGE > FILE` makes one")
    return path
