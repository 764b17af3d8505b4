"""Files that a study names are found beside it, and what they contain decides what runs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tare.errors import StoreError, StudyError
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.store.resume import resume_store
from tare.study.reading.load import load
from tare.study.registry import Registry, installed

RECIPE = """\
format: 1
files:
  - {path: /etc/motd, source: motd}
entrypoint: [mariadbd]
"""
PROFILE = '{"defaultAction": "SCMP_ACT_ALLOW"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's own directory, with a blank in its name."""
    folder = tmp_path / "my studies"
    folder.mkdir()
    return folder


def written(folder: Path, text: str, *changes: tuple[str, str]) -> Path:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def with_recipe(folder: Path, text: str, image: str = "./my-recipe.yaml") -> Path:
    (folder / "my-recipe.yaml").write_text(RECIPE)
    (folder / "motd").write_text("measured\n")
    return written(folder, text, ("  image: mariadb\n  database", f"  image: {image}\n  database"))


def with_profile(folder: Path, text: str, profile: str) -> Path:
    given = f"  network: host\n  confinement: {{seccomp: {profile}}}\n"
    return written(folder, text, ("  network: host\n", given), ("bare: {sut.deployment: bare}", "bare: {}"))


@pytest.mark.parametrize("image", ["./my-recipe.yaml", "my-recipe.yaml", "../my studies/my-recipe.yaml"])
def test_the_path_of_a_recipe_is_relative_to_the_study(
    folder: Path, text: str, registry: Registry, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_recipe(folder, text, f'"{image}"')
    monkeypatch.chdir("/")
    recipe = Path(load(path, registry).arms[0].settings.sut.image)
    assert recipe.is_absolute()
    assert recipe.read_text() == RECIPE


def test_a_client_and_a_level_may_name_a_recipe(folder: Path, text: str, registry: Registry) -> None:
    (folder / "own.yml").write_text(RECIPE)
    path = written(folder, text, ("image: mariadb\n  deployment: bare", "image: own.yml\n  deployment: bare"),
                   ("{sut.network: bridge}", "{sut.network: bridge, sut.image: own.yml}"))  # fmt: skip
    arms = {arm.name: arm.settings for arm in load(path, registry).arms}
    assert arms["bridge-load-1"].sut.image == arms["host-load-1"].sides["client"].image == str(folder / "own.yml")
    assert arms["host-load-1"].sut.image == "mariadb"


@pytest.mark.parametrize("image", ["mariadv.yaml", "./none.yaml", "no/where.yml"])
def test_a_recipe_that_is_not_there_is_refused_where_it_is_named(
    folder: Path, text: str, registry: Registry, image: str
) -> None:
    path = with_recipe(folder, text, image)
    with pytest.raises(StudyError, match=r"study\.yaml:6:\d+: sut\.image: .* cannot be read") as caught:
        load(path, registry)
    assert str(folder / image) in str(caught.value.hint)


def test_a_wrong_recipe_is_refused_with_its_own_line(folder: Path, text: str) -> None:
    path = with_recipe(folder, text.replace("name: load", "name: sysbench").replace("  tables: 8\n", ""))
    (folder / "my-recipe.yaml").write_text(RECIPE + "user: [root]\n")
    with pytest.raises(StudyError, match=r"sut\.image: .*my-recipe\.yaml:5:\d+: user: expected text"):
        load(path, installed())


def test_a_plan_contains_the_recipe_and_every_file_that_it_adds(folder: Path, text: str) -> None:
    path = with_recipe(folder, text.replace("name: load", "name: sysbench"))
    files = load(path, installed()).files
    assert set(files) == {str(folder / "my-recipe.yaml"), str(folder / "motd")}
    assert files[str(folder / "motd")].sha256 == hashlib.sha256(b"measured\n").hexdigest()
    assert files[str(folder / "my-recipe.yaml")].text == RECIPE


@pytest.mark.parametrize("profile", ["./filter.json", "filter.json"])
def test_a_seccomp_profile_lies_beside_the_study(folder: Path, text: str, registry: Registry, profile: str) -> None:
    (folder / "filter.json").write_text(PROFILE)
    study = load(with_profile(folder, text, profile), registry)
    assert study.arms[0].settings.sut.confinement.seccomp == str(folder / "filter.json")
    assert study.files[str(folder / "filter.json")].text == PROFILE
    plan = expand(study)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_seccomp_profile_that_is_not_there_is_refused(folder: Path, text: str, registry: Registry) -> None:
    with pytest.raises(StudyError, match=r"sut\.confinement\.seccomp: './none\.json' cannot be read"):
        load(with_profile(folder, text, "./none.json"), registry)


def test_a_misspelt_filter_is_no_path(folder: Path, text: str, registry: Registry) -> None:
    with pytest.raises(StudyError, match=r"sut\.confinement\.seccomp"):
        load(with_profile(folder, text, "unconfned"), registry)


def test_a_store_is_not_resumed_after_the_content_of_a_named_file_changed(
    folder: Path, text: str, registry: Registry
) -> None:
    (folder / "filter.json").write_text(PROFILE)
    path = with_profile(folder, text, "./filter.json")
    with resume_store(folder / "store", expand(load(path, registry))):
        pass
    with resume_store(folder / "store", expand(load(path, registry))):
        pass
    (folder / "filter.json").write_text(PROFILE.replace("ALLOW", "LOG"))
    with (
        pytest.raises(StoreError, match=r"files\..*/filter\.json is [0-9a-f]{64} there and [0-9a-f]{64} here"),
        resume_store(folder / "store", expand(load(path, registry))),
    ):
        pass


def test_a_study_that_names_no_file_has_the_plan_that_it_always_had(
    folder: Path, text: str, registry: Registry
) -> None:
    study = load(written(folder, text), registry)
    assert study.files == {}
    assert expand(study).digest == "47dd2792639dccfe484a62531df14f09f81412db9bd5f7bff317ad8a446d8244"
