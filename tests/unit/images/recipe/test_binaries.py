"""Images of tare's own programs, which need nothing below them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks
from tare.images import Workshop
from tare.images.recipe import file
from tare.images.recipe.file import read_recipe, recipe_key
from tare.images.recipe.recipe import Recipe
from tare.sites.fake import FakeHost

TEXT = """
format: 1
binaries: [{name: tare-load, path: /usr/local/bin/tare-load}]
directories: [{path: /run/tare}]
entrypoint: [tare-load]
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "tare-load"
    program.write_bytes(b"the program")
    monkeypatch.setattr(file, "candidates", lambda _: [str(tmp_path / "nowhere"), str(program)])
    path = tmp_path / "own.yaml"
    path.write_text(TEXT)
    return path


def test_an_image_of_the_program_alone_needs_no_packages(recipe: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    archive = Recipe().fetch(str(recipe), Workshop(FakeHost(), None), scratch)
    names, contents = set[str](), dict[str, bytes]()
    for layer in archive.layers:
        with tarfile.open(layer) as tar:
            for member in tar:
                names.add(member.name)
                if (content := tar.extractfile(member)) is not None:
                    contents[member.name] = content.read()
    assert contents["usr/local/bin/tare-load"] == b"the program"
    assert b"tare-load\t" in contents["usr/share/tare/programs"]
    assert not [name for name in names if ".wh." in name]


def test_another_program_is_another_image(recipe: Path) -> None:
    before = recipe_key(read_recipe(recipe), recipe)
    (recipe.parent / "tare-load").write_bytes(b"a newer program")
    assert recipe_key(read_recipe(recipe), recipe) != before


def test_a_program_that_is_not_installed_is_told(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "candidates", lambda _: [])
    with pytest.raises(EnvironmentLacks, match="tare-load is missing"):
        recipe_key(read_recipe(recipe), recipe)
