from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.images.layouts import CONFIG, HERE, LAYERS, Layout
from tests.unit.images.tars import Entry, file, folder, link, write_tar

from tare.errors import StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images.oci.saved import SavedTar
from tare.images.oci.unpack import unpack
from tare.sites.fake import FakeHost

WORKSHOP = Workshop(FakeHost(), None)


def layer(entries: list[Entry]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry.member, io.BytesIO(entry.content))
    return content.getvalue()


def saved(path: Path, *more: Entry, **manifest: object) -> Path:
    """As Docker 20.10 writes it, where the second layer's name may be a link to another's."""
    listed = {"Config": "c.json", "RepoTags": ["a:b"], "Layers": ["0/layer.tar", "1/layer.tar"], **manifest}
    entries = [
        folder("0"), file("0/layer.tar", layer(LAYERS[0])), folder("1"), link("1/layer.tar", "../2/layer.tar"),
        folder("2"), file("2/layer.tar", layer(LAYERS[1])),
        file("c.json", json.dumps({"architecture": HERE, "os": "linux", "config": CONFIG}).encode()),
        file("manifest.json", json.dumps([listed]).encode()),
    ]  # fmt: skip
    return write_tar(path, [*entries, *more])


def oci(path: Path) -> Path:
    layout = Layout(path.parent / "layout")
    layout.index(layout.image())
    with tarfile.open(path, "w") as tar:
        tar.add(layout.folder, arcname=".")
    return path


def both(path: Path) -> Path:
    """As Docker 25 and later: an OCI layout with a manifest.json beside it."""
    layout = Layout(path.parent / "layout")
    image = json.loads(layout.path(layout.image()["digest"]).read_text())
    names = [f"blobs/sha256/{each['digest'][7:]}" for each in (image["config"], *image["layers"])]
    layout.index()
    manifest = [{"Config": names[0], "RepoTags": None, "Layers": names[1:]}]
    (layout.folder / "manifest.json").write_text(json.dumps(manifest))
    with tarfile.open(path, "w") as tar:
        tar.add(layout.folder, arcname=".")
    return path


def fetch(path: Path) -> Archive:
    scratch = path.parent / "scratch"
    scratch.mkdir()
    return SavedTar().fetch(str(path), WORKSHOP, scratch)


def files(archive: Archive, root: Path) -> Mapping[str, str]:
    root.mkdir()
    unpack(archive.layers, root)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("write", [saved, oci, both])
def test_every_kind_of_saved_image_is_read(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    archive = fetch(write(tmp_path / "image.tar"))
    assert archive.config.command == ("server",)
    assert files(archive, tmp_path / "root") == {"etc/conf": "3"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_plain_root_file_system_is_read(tmp_path: Path, mode: str) -> None:
    archive = fetch(write_tar(tmp_path / "root.tar", [folder("./"), file("./etc/conf", b"y")], mode))
    assert archive.config == ImageConfig()
    assert files(archive, tmp_path / "root") == {"etc/conf": "y"}


def test_the_cache_key_is_the_file_s_content(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [file("a")])
    first = SavedTar().cache_key(str(path), WORKSHOP)
    again = SavedTar().cache_key(str(write_tar(tmp_path / "b.tar", [file("a")])), WORKSHOP)
    other = SavedTar().cache_key(str(write_tar(tmp_path / "c.tar", [file("b")])), WORKSHOP)
    assert first == again != other


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"Layers": ["../../etc/passwd"]}, "has no file"),
        ({"Layers": ["/etc/passwd"]}, "has no file"),
        ({"Layers": ["none"]}, "has no file"),
        ({"Layers": ["0"]}, "has no file"),
        ({"Layers": ["a\0b"]}, "has no file"),
        ({"Config": "out"}, "has no file"),
        ({"Layers": "0/layer.tar"}, "no part of an image: 0.Layers"),
        ({"Config": None}, "no part of an image: 0.Config"),
    ],
)
def test_a_manifest_that_leads_nowhere_is_one_error(
    tmp_path: Path, manifest: dict[str, object], message: str
) -> None:
    path = saved(tmp_path / "image.tar", link("out", "/etc/os-release"), **manifest)
    with pytest.raises(StudyError, match=message):
        fetch(path)


@pytest.mark.parametrize("manifest", ["", "{}", "[]", "[1]", "[{}]"])
def test_a_manifest_that_is_none_is_one_error(tmp_path: Path, manifest: str) -> None:
    path = write_tar(tmp_path / "image.tar", [file("manifest.json", manifest.encode())])
    with pytest.raises(StudyError, match="no part of an image"):
        fetch(path)


def test_several_images_in_one_file_are_refused(tmp_path: Path) -> None:
    entry = {"Config": "c", "Layers": []}
    path = write_tar(tmp_path / "image.tar", [file("manifest.json", json.dumps([entry, entry]).encode())])
    with pytest.raises(StudyError, match="holds 2 images"):
        fetch(path)


@pytest.mark.parametrize("content", [b"", b"no tar at all", b"\x1f\x8b\x08 no gzip", bytes(100)])
def test_a_file_that_is_no_tar_is_one_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "image.tar").write_bytes(content)
    with pytest.raises(StudyError, match=r"image\.tar is not a complete tar"):
        fetch(tmp_path / "image.tar")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no file"):
        SavedTar().cache_key(str(tmp_path / "none.tar"), WORKSHOP)
