"""Archives of Maven's repository in recipes: the right bits or none, unpacked for their new owner."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks, StudyError
from tare.images.recipe.archive import archive_files, fetch_archive
from tare.images.recipe.file import AddedArchive, read_recipe, recipe_key
from tare.images.recipe.recipe import FetchedFiles, write_layer
from tare.sites import Completed
from tare.sites.fake import FakeHost


def made(path: Path, *names: str, kind: bytes = tarfile.REGTYPE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name.endswith("/") else kind
            member.mode, member.uid, member.mtime = 0o755, 7, 1_500_000_000
            content = b"" if name.endswith("/") else name.encode()
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def archive(sha256: str = "0" * 64) -> AddedArchive:
    return AddedArchive(path="/opt/a", maven="g:a:1:tar.gz:bin", sha256=sha256, strip=1)


def test_maven_is_asked_for_the_very_artifact_and_its_digest_is_held_against_the_recipe(tmp_path: Path) -> None:
    tar = made(tmp_path / "fetched" / "a-1-bin.tar.gz", "a-1/x")
    digest = hashlib.sha256(tar.read_bytes()).hexdigest()
    host = FakeHost()
    assert fetch_archive(host, archive(digest), tar.parent) == tar
    assert {"-Dartifact=g:a:1:tar.gz:bin", f"-DoutputDirectory={tar.parent}"} <= set(host.ran()[-1])
    with pytest.raises(EnvironmentLacks, match=f"sha256 is {digest}"):
        fetch_archive(host, archive(), tar.parent)


@pytest.mark.parametrize(
    ("done", "message"),
    [
        (Completed(("env",), 1, b"[ERROR] Could not find artifact g:a\n[ERROR] more\n"), "Could not find artifact"),
        (Completed(("env",), 127, b"", b"env: no mvn\n"), "env: no mvn"),
        (Completed(("env",), 0, b""), "left 0 files"),
    ],
)
def test_what_maven_cannot_bring_is_told(tmp_path: Path, done: Completed, message: str) -> None:
    with pytest.raises(EnvironmentLacks, match=message):
        fetch_archive(FakeHost(answers={("env",): done}), archive(), tmp_path)


def names(source: Path) -> Sequence[str]:
    return [each.name for each in archive_files(archive(), source)]


def test_folders_are_cut_off_the_names(tmp_path: Path) -> None:
    assert names(made(tmp_path / "a.tar.gz", "a-1/", "a-1/bin/", "a-1/bin/run")) == ["bin", "bin/run"]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a/.wh.x"])
def test_a_name_that_leaves_its_place_or_hides_another_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match="a name that no image may have"):
        names(made(tmp_path / "a.tar.gz", name))


def test_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="neither a file nor a directory"):
        names(made(tmp_path / "a.tar.gz", "a/null", kind=tarfile.CHRTYPE))


def test_it_is_in_the_layer_for_its_new_owner_without_dates_and_in_the_key(tmp_path: Path) -> None:
    recipe, base, layer = tmp_path / "mine.yaml", tmp_path / "base.tar", tmp_path / "layer.tar"
    text = "format: 1\nsuite: sid\npackages: [aa]\narchives: [{path: /opt/a, maven: 'g:a:1:tar.gz', sha256: '"
    recipe.write_text(f"{text}{'0' * 64}', strip: 1}}]\n")
    passwd = tmp_path / "passwd"
    passwd.write_text("root:x:0:0::/root:/bin/sh\n")
    with tarfile.open(base, "w") as tar:
        tar.add(passwd, "./etc/passwd")
    brought = FetchedFiles(tars={"/opt/a": made(tmp_path / "a.tar.gz", "a-1/", "a-1/run")})
    write_layer(read_recipe(recipe), recipe, base, layer, brought)
    with tarfile.open(layer) as tar:
        run = tar.getmember("opt/a/run")
    assert (run.mode, run.uid, run.mtime) == (0o755, 0, 0)
    before = recipe_key(read_recipe(recipe), recipe)
    recipe.write_text(f"{text}{'1' * 64}', strip: 1}}]\n")
    assert recipe_key(read_recipe(recipe), recipe) != before
