"""Maven modules and trees in recipes: built or copied, and part of what an image is."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks, StudyError
from tare.images.recipe.file import read_recipe, recipe_key
from tare.images.recipe.maven_module import build_jars
from tare.images.recipe.recipe import FetchedFiles, write_layer
from tare.sites import Completed
from tare.sites.fake import FakeHost

TEXT = """\
format: 1
suite: bookworm
packages: [openjdk-17-jre-headless]
modules: [{source: ../java/mine, path: /opt/mine/lib}]
trees: [{source: tree, path: /opt/tree}]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    module = tmp_path / "java" / "mine"
    (module / "src" / "main").mkdir(parents=True)
    (module / "pom.xml").write_text("<project/>")
    (module / "src" / "main" / "A.java").write_text("class A {}")
    (module / "target").mkdir()
    tree = tmp_path / "images" / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "run").write_text("#!/bin/sh\n")
    (tree / "bin" / "run").chmod(0o755)
    path = tmp_path / "images" / "mine.yaml"
    path.write_text(TEXT)
    return path


def key(recipe: Path) -> str:
    return recipe_key(read_recipe(recipe), recipe)


def test_a_change_of_any_source_makes_another_image_and_what_was_built_does_not(recipe: Path) -> None:
    before = key(recipe)
    module = recipe.parent.parent / "java" / "mine"
    (module / "target" / "A.class").write_text("built")
    assert key(recipe) == before
    (module / "src" / "main" / "A.java").write_text("class A { int a; }")
    changed = key(recipe)
    assert changed != before
    (recipe.parent / "tree" / "bin" / "run").chmod(0o644)
    assert key(recipe) not in {before, changed}


def test_jars_and_trees_are_in_the_layer_with_modes_and_without_dates(recipe: Path, tmp_path: Path) -> None:
    jar = tmp_path / "mine.jar"
    jar.write_bytes(b"jar")
    base, layer = tmp_path / "base.tar", tmp_path / "layer.tar"
    with tarfile.open(base, "w"):
        pass
    recipe.write_text(f"{TEXT}directories: [{{path: /var/mine, owner: mine}}]\n")
    with pytest.raises(StudyError, match="no user 'mine'"):
        write_layer(read_recipe(recipe), recipe, base, layer, FetchedFiles({"/opt/mine/lib": [jar]}))
    recipe.write_text(TEXT)
    passwd = tmp_path / "etc" / "passwd"
    passwd.parent.mkdir()
    passwd.write_text("root:x:0:0::/root:/bin/sh\n")
    with tarfile.open(base, "w") as tar:
        tar.add(passwd, "./etc/passwd")
    write_layer(read_recipe(recipe), recipe, base, layer, FetchedFiles({"/opt/mine/lib": [jar]}))
    with tarfile.open(layer) as tar:
        by_name = {member.name: member for member in tar}
    assert {"opt/mine/lib/mine.jar", "opt/tree", "opt/tree/bin", "opt/tree/bin/run"} <= set(by_name)
    assert by_name["opt/tree/bin/run"].mode == 0o755
    assert by_name["opt/mine/lib/mine.jar"].mode == 0o644
    assert {member.mtime for member in by_name.values()} == {0}


def test_links_in_a_tree_and_folders_that_are_not_there_are_refused(recipe: Path) -> None:
    (recipe.parent / "tree" / "link").symlink_to("/etc/passwd")
    with pytest.raises(StudyError, match="neither a file nor a directory"):
        key(recipe)
    recipe.write_text(TEXT.replace("source: tree", "source: wood"))
    with pytest.raises(StudyError, match="'wood' is no directory"):
        key(recipe)
    recipe.write_text(TEXT.replace("../java/mine", "../java"))
    with pytest.raises(StudyError, match="is not a Maven module"):
        key(recipe)


def test_a_module_that_cannot_be_built_says_mavens_reason(recipe: Path, tmp_path: Path) -> None:
    module = recipe.parent.parent / "java" / "mine"

    class Failing(FakeHost):
        def run(self, *args: object, **kwargs: object) -> Completed:
            return Completed(("mvn",), 1, b"[ERROR] COMPILATION ERROR : \n[ERROR] A.java:[1]", b"")

    with pytest.raises(EnvironmentLacks, match="COMPILATION ERROR"):
        build_jars(Failing(), module, tmp_path / "scratch")
