"""Images from a tar file: output of `docker save`, an OCI layout in a tar, or a plain root file system."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, RootModel

from tare.errors import StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images.digest import file_digest
from tare.images.oci.layer_stream import open_layer
from tare.images.oci.layout import OciLayout, config_of, is_layout, must_not_be_endless
from tare.images.oci.model import ImageFile, SavedImage, read_json
from tare.images.oci.unpack import unpack

_MANIFEST = "manifest.json"
_INDEX = "index.json"


class _SavedImages(RootModel[tuple[SavedImage, ...]]):
    root: tuple[SavedImage, ...] = Field(min_length=1)


class SavedTar:
    """`tar:PATH`, plain or compressed."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """Digest of the file's content."""
        del workshop
        return file_digest(_existing(reference))

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Read the tar; its content, not its name, decides which of the three kinds it is."""
        return open_saved(_existing(reference), workshop, scratch)


def open_saved(path: Path, workshop: Workshop, scratch: Path) -> Archive:
    """Unpack the tar's files into `scratch` and read the image in them.

    Newer engines write both kinds into one tar; manifest.json is then used, since it names a single image.
    """
    with open_layer(path) as tar:
        names = {member.name.removeprefix("./") for member in tar}
    if not names & {_MANIFEST, _INDEX}:
        return Archive((path,), ImageConfig())
    folder = scratch / "saved"
    folder.mkdir()
    unpack([path], folder)
    if _MANIFEST in names:
        return _docker_archive(folder, path)
    if is_layout(folder):
        _refuse_links_out(folder, path)
        return OciLayout().fetch(str(folder), workshop, scratch)
    raise StudyError(f"{path} holds neither what `docker save` writes nor an OCI layout")


def _refuse_links_out(folder: Path, path: Path) -> None:
    """Refuse links that lead out of the layout.

    Its files are opened by name, and a link may lead to a file of the machine.
    """
    for each in folder.rglob("*"):
        if each.is_symlink() and not each.resolve().is_relative_to(folder.resolve()):
            raise StudyError(f"{path}: the link {each.name!r} leads out of the image", hint="do not use this image")


def _docker_archive(folder: Path, path: Path) -> Archive:
    """Read an archive with manifest.json (moby, image/spec/v1.2).

    It names the configuration and the layers, lowest first.
    """
    images = read_json(_SavedImages, _inside(folder, _MANIFEST)).root
    if len(images) != 1:
        raise StudyError(f"{path} holds {len(images)} images", hint="save one image to a file")
    must_not_be_endless(len(images[0].layers), str(path))
    config = read_json(ImageFile, _inside(folder, images[0].config))
    return Archive(tuple(_inside(folder, name) for name in images[0].layers), config_of(config, str(path)))


def _inside(folder: Path, name: str) -> Path:
    """Path of a file of the archive. Links are followed: older engines link one layer's name to another's."""
    path = (folder / name.replace("\0", "")).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise StudyError(f"the saved image has no file {name!r}", hint="the tar is not complete")
    return path


def _existing(reference: str) -> Path:
    path = Path(reference)
    if not path.is_file():
        raise StudyError(f"there is no file {reference}", hint="`docker save IMAGE > FILE` makes one")
    return path
