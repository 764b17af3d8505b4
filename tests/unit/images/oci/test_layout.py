from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.images.layouts import HERE, INDEX, LAYERS, Layout, platform, tagged
from tests.unit.images.tars import file

from tare.errors import StudyError
from tare.images import Archive, Workshop
from tare.images.oci import layout as module
from tare.images.oci.layout import OciLayout
from tare.images.oci.unpack import unpack
from tare.sites.fake import FakeHost

OTHER = "arm64" if HERE != "arm64" else "amd64"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


def fetch(reference: Path | str) -> Archive:
    return OciLayout().fetch(str(reference), Workshop(FakeHost(), None), Path("/nowhere"))


def key(reference: Path | str) -> str | None:
    return OciLayout().cache_key(str(reference), Workshop(FakeHost(), None))


def files(archive: Archive, root: Path) -> dict[str, str]:
    root.mkdir()
    unpack(archive.layers, root)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_layers_and_configuration_are_read(layout: Layout, tmp_path: Path) -> None:
    archive = fetch(layout.index(layout.image()))
    assert files(archive, tmp_path / "root") == {"etc/conf": "3"}
    config = archive.config
    assert (config.entrypoint, config.command) == (("/entry", "--x"), ("server",))
    assert config.env == (("PATH", "/bin"), ("OPTS", "a=b c"), ("EMPTY", ""))
    assert (config.user, config.workdir, config.data_dir) == ("db:db", "/srv", "/data")


def test_an_empty_configuration_is_one(layout: Layout) -> None:
    nothing = {"User": "", "Env": None, "Entrypoint": None, "Cmd": None, "WorkingDir": "", "Volumes": None}
    config = fetch(layout.index(layout.image(config={"config": nothing}))).config
    assert (config.entrypoint, config.env, config.workdir, config.data_dir) == ((), (), "/", None)


def test_of_several_platforms_this_machine_s_is_taken(layout: Layout, tmp_path: Path) -> None:
    ours = layout.image(**platform(HERE))
    theirs = layout.image([[file("theirs")]], {"architecture": OTHER}, **platform(OTHER))
    attestation = layout.json({"config": ours, "layers": []}, **platform("unknown", "unknown"))
    inner = layout.json({"manifests": [theirs, attestation, ours]}, mediaType=INDEX)
    assert files(fetch(layout.index(inner)), tmp_path / "root") == {"etc/conf": "3"}
    assert key(layout.folder) == ours["digest"]


def test_an_index_without_a_media_type_is_still_one(layout: Layout) -> None:
    ours = layout.image()
    inner = layout.json({"manifests": [ours]})
    assert key(layout.index(inner)) == ours["digest"]


def test_one_tag_of_several_is_taken(layout: Layout, tmp_path: Path) -> None:
    folder = layout.index(layout.image(**tagged("7")), layout.image([[file("eight")]], **tagged("8")))
    assert files(fetch(f"{folder}:8"), tmp_path / "root") == {"eight": "x"}


@pytest.mark.parametrize("reference", ["", ":9"])
def test_several_or_no_image_is_an_error_that_names_the_tags(layout: Layout, reference: str) -> None:
    folder = layout.index(layout.image(**tagged("7")), layout.image([[file("eight")]], **tagged("8")))
    with pytest.raises(StudyError, match=r"oci:PATH:TAG \(7, 8\)"):
        fetch(f"{folder}{reference}")


def test_an_image_of_another_machine_is_refused(layout: Layout) -> None:
    with pytest.raises(StudyError, match=f"for linux/{OTHER}, this machine is linux/{HERE}"):
        fetch(layout.index(layout.image(config={"architecture": OTHER})))
    with pytest.raises(StudyError, match="0 images of 1"):
        fetch(layout.index(layout.image(config={"architecture": OTHER}, **platform(OTHER))))


def _spoil_layer(layout: Layout, image: dict[str, str]) -> None:
    manifest = json.loads(layout.path(image["digest"]).read_text())
    path = layout.path(manifest["layers"][1]["digest"])
    path.write_bytes(path.read_bytes().replace(b"3", b"4", 1))


def _lose_layer(layout: Layout, image: dict[str, str]) -> None:
    manifest = json.loads(layout.path(image["digest"]).read_text())
    layout.path(manifest["layers"][0]["digest"]).unlink()


def _lengthen_config(layout: Layout, image: dict[str, str]) -> None:
    manifest = json.loads(layout.path(image["digest"]).read_text())
    with layout.path(manifest["config"]["digest"]).open("a") as config:
        config.write(" ")


@pytest.mark.parametrize(
    ("spoil", "message"), [(_spoil_layer, "damaged"), (_lose_layer, "missing"), (_lengthen_config, "damaged")]
)
def test_every_blob_is_checked(
    layout: Layout, spoil: Callable[[Layout, dict[str, str]], None], message: str
) -> None:
    image = layout.image()
    spoil(layout, image)
    with pytest.raises(StudyError, match=f"the blob sha256:.* is {message}"):
        fetch(layout.index(image))


@pytest.mark.parametrize(
    "index",
    [
        "", "[]", "{", '{"manifests": 1}', '{"manifests": [1]}', '{"manifests": [{"digest": "sha256:x"}]}',
        '{"manifests": [{"digest": "md5:0"}]}', '{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}',
        '{"manifests": []}', "{}", '{"manifests": null}',
    ],
)  # fmt: skip
def test_an_index_that_is_none_is_one_error(layout: Layout, index: str) -> None:
    layout.index()
    (layout.folder / "index.json").write_text(index)
    with pytest.raises(StudyError, match=str(layout.folder)):
        fetch(layout.folder)


def test_an_index_within_itself_ends(layout: Layout) -> None:
    image = layout.image()
    for _ in range(9):
        image = layout.json({"manifests": [image]})
    with pytest.raises(StudyError, match="nested more than 4 deep"):
        fetch(layout.index(image))


def test_an_artifact_is_no_image(layout: Layout) -> None:
    with pytest.raises(StudyError, match="no layers"):
        fetch(layout.index(layout.image(layers=[])))


def test_a_folder_that_is_no_layout_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(StudyError, match="is no OCI layout"):
            fetch(folder)


def test_a_layer_that_climbs_is_refused_when_it_is_unpacked(layout: Layout, tmp_path: Path) -> None:
    archive = fetch(layout.index(layout.image([*LAYERS, [file("../out")]])))
    with pytest.raises(StudyError, match="would leave"):
        files(archive, tmp_path / "root")
    assert not (tmp_path / "out").exists()


def test_a_blob_named_many_times_is_read_once_and_not_without_end(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by attack: a manifest of 16 MB may name one blob 150,000 times, each of which was read anew."""
    read = list[str]()

    def digest(path: Path) -> str:
        read.append(path.name)
        return path.name

    monkeypatch.setattr(module, "file_digest", digest)
    blob = layout.blob(b"layer")
    config = layout.json({"architecture": HERE, "os": "linux"})
    many = layout.json({"config": config, "layers": [blob] * 1000})
    assert len(fetch(layout.index(many)).layers) == 1000
    assert read.count(blob["digest"].removeprefix("sha256:")) == 1
    with pytest.raises(StudyError, match="the image has 1001 layers"):
        fetch(layout.index(layout.json({"config": config, "layers": [blob] * 1001})))
