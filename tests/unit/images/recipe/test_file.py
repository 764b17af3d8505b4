from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.images.recipe.file import find_recipe, read_recipe, recipe_key
from tare.study.catalogue import recipes

SOUND = """\
format: 1
suite: bookworm
packages: [sysbench]
"""

MISTAKES = {
    "an unknown key": ("maven: [{artifact: a}]", ":4:1: maven: unknown key"),
    "a key with a typing error": ("enviroment: {A: b}", ":4:1: enviroment: unknown key"),
    "a wrong type": ("command: mysqld", ":4:1: command: expected a list, got"),
    "a number where text is wanted": ("env: {A: 1}", ":4:7: env.A: expected text, got 1"),
    "a mode that is a number": ("files: [{path: /a, content: b, mode: 0644}]", "files[0].mode: expected text"),
    "a relative path": ("files: [{path: a, content: b}]", "files[0].path: 'a' is not"),
    "a path that climbs": (
        "files: [{path: /a/../b, content: b}]",
        "files[0].path: expected a path inside the image",
    ),
    "the root itself": ("directories: [{path: /}]", "directories[0].path: expected a path inside the image"),
    "a whiteout": ("files: [{path: /a/.wh.b, content: b}]", "files[0].path: a name that starts with .wh."),
    "a removal that climbs": ("remove: [/../etc]", "remove[0]: expected a path inside"),
    "neither content nor source": ("files: [{path: /a}]", "files[0]: give either content or source"),
    "content and source": ("files: [{path: /a, content: b, source: c}]", "files[0]: give either"),
    "a file twice": ("files: [{path: /a, content: b}, {path: /a, content: c}]", "files[1].path: /a is added twice"),
    "a directory twice": ("directories: [{path: /a}, {path: /a/}]", "directories[1].path: /a/ is added twice"),
    "a file where a directory is": (
        "directories: [{path: /a}]\nfiles: [{path: /a, content: b}]",
        "files[0].path: /a",
    ),
    "an option in place of a package": ("packages: ['--hook-dir=/x']", "packages[0]"),
    "no package": ("packages: []", ":3:1: packages: must not be empty"),
    "root as an added user": ("users: [{name: me, uid: 0}]", "users[0].uid: must be greater than 0"),
    "an account that would add a line": ("users: [{name: 'a:b', uid: 5}]", "users[0].name"),
    "a home that would add a line": ('users: [{name: a, uid: 5, home: "/a\\nroot::0"}]', "users[0].home"),
    "an instruction in a user": ('user: "a\\nONBUILD x"', "user"),
    "a line break in the environment": ('env: {A: "b\\nc"}', "env.A"),
    "an environment without a name": ("env: {'': b}", "env"),
    "an archive without a digest": (
        "archives: [{path: /a, maven: 'a:b:1:tar.gz'}]",
        "archives[0].sha256: this key is missing",
    ),
    "an archive that is no tar": (
        f"archives: [{{path: /a, maven: 'a:b:1:zip', sha256: {'0' * 64}}}]",
        "archives[0].maven",
    ),
    "a date that is neither checked nor ignored": (
        "valid_until: tomorrow",
        ":4:1: valid_until: unknown value 'tomorrow'",
    ),
    "duplicate key": ("suite: trixie", ":4:1: suite: duplicate key"),
}


def written(folder: Path, more: str = "") -> Path:
    path = folder / "mine.yaml"
    kept = SOUND.replace("packages: [sysbench]\n", "") if more.startswith("packages:") else SOUND
    path.write_text(kept + more + "\n")
    return path


@pytest.mark.parametrize(("line", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_error_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(StudyError) as raised:
        read_recipe(path)
    assert str(path) in raised.value.what
    assert message in raised.value.what


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("format", "format: this key is missing"),
        ("suite", "packages without suite"),
        ("packages", "suite without packages"),
    ],
)
def test_what_every_recipe_needs_is_asked_for(tmp_path: Path, key: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("".join(line for line in SOUND.splitlines(keepends=True) if not line.startswith(key)))
    with pytest.raises(StudyError, match=message):
        read_recipe(path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SOUND.replace("format: 1", "format: 2"))
    with pytest.raises(StudyError, match="format"):
        read_recipe(path)


def test_the_configuration_is_what_the_recipe_says(tmp_path: Path) -> None:
    lines = "entrypoint: [a]\ncommand: [b, c]\nuser: me\nenv: {Z: '1', A: '2'}\nworkdir: /w\ndata_dir: /d"
    config = read_recipe(written(tmp_path, lines)).config
    assert (config.entrypoint, config.command, config.user) == (("a",), ("b", "c"), "me")
    assert config.env == (("A", "2"), ("Z", "1"))
    assert (config.workdir, config.data_dir) == ("/w", "/d")


def key_of(path: Path) -> str:
    return recipe_key(read_recipe(path), path)


def test_the_cache_key_is_blind_to_comments_and_order(tmp_path: Path) -> None:
    path = written(tmp_path)
    first = key_of(path)
    path.write_text("# another comment\n" + "".join(reversed(SOUND.splitlines(keepends=True))))
    assert key_of(path) == first


@pytest.mark.parametrize("line", ["user: nobody", "remove: [/etc/motd]", "env: {A: b}", "data_dir: /d"])
def test_the_cache_key_sees_every_setting(tmp_path: Path, line: str) -> None:
    assert key_of(written(tmp_path)) != key_of(written(tmp_path, line))


def test_the_cache_key_sees_the_files_beside_the_recipe(tmp_path: Path) -> None:
    path = written(tmp_path, "files: [{path: /a, source: a.cnf}, {path: /b, source: b.cnf}]")
    keys = set()
    for contents in (("1", "23"), ("12", "3"), ("1", "23 ")):
        for name, content in zip(("a.cnf", "b.cnf"), contents, strict=True):
            (tmp_path / name).write_text(content)
        keys.add(key_of(path))
    assert len(keys) == 3


@pytest.mark.parametrize("source", ["../secret", "/etc/hostname", "way/secret", "none", "."])
def test_a_source_outside_the_recipe_s_folder_is_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "recipe"
    folder.mkdir()
    (folder / "way").symlink_to("..")
    path = written(folder, f"files: [{{path: /a, source: {source}}}]")
    with pytest.raises(StudyError, match="no file beside the recipe"):
        key_of(path)


def test_an_unknown_recipe_is_told_with_the_nearest_one() -> None:
    with pytest.raises(StudyError, match='did you mean "mariadb"'):
        find_recipe("mariadbb")


OF_PACKAGES = {
    "ferretdb-2": {"postgres"},
    "postgresql-15": {"postgres"},
    "redis-7": {"redis"},
    "valkey-8": {"valkey"},
}
"""Users that a recipe's packages make; a build refuses an owner that is not there."""


@pytest.mark.parametrize("name", sorted(recipes()))
def test_shipped_recipes_are_sound_and_have_the_mount_points_of_a_run(name: str) -> None:
    recipe = read_recipe(find_recipe(name))
    made = {each.path: each for each in recipe.directories}
    assert recipe.user in {user.name for user in recipe.users} | OF_PACKAGES.get(name, set())
    assert made["/run/tare"].owner == recipe.user
    assert recipe.data_dir is None or (made[recipe.data_dir].empty and made[recipe.data_dir].owner == recipe.user)
