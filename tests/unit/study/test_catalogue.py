"""Studies and recipes are found by name, directory or file, in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.study import catalogue


def test_a_shipped_study_is_found_by_name() -> None:
    assert catalogue.find_study("percona-2016").name == "study.yaml"
    assert catalogue.find_study("percona-2016").parent.name == "percona-2016"


def test_a_directory_and_a_file_are_found(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("format: 1\n")
    assert catalogue.find_study(str(tmp_path)) == file
    assert catalogue.find_study(str(file)) == file


def test_what_is_on_disk_comes_before_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "percona-2016" / "study.yaml"
    own.parent.mkdir()
    own.write_text("format: 1\n")
    monkeypatch.chdir(tmp_path)
    assert catalogue.find_study("percona-2016").resolve() == own


def test_a_directory_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no study\.yaml in"):
        catalogue.find_study(str(tmp_path))


def test_a_directory_that_only_shares_a_shipped_study_s_name_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "percona-2016").mkdir()
    monkeypatch.chdir(tmp_path)
    assert catalogue.find_study("percona-2016").exists()


def test_a_name_nearly_right_is_suggested() -> None:
    with pytest.raises(StudyError, match="no study 'percona-2061'") as raised:
        catalogue.find_study("percona-2061")
    assert raised.value.hint == 'did you mean "percona-2016"?'
    assert raised.value.exit_code == 2


def test_an_installed_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "tare" / "_catalogue"
    (packed / "studies" / "other").mkdir(parents=True)
    (packed / "studies" / "other" / "study.yaml").write_text("format: 1\n")
    (packed / "images").mkdir()
    (packed / "images" / "thing.yaml").write_text("")
    monkeypatch.setattr(catalogue, "_CATALOGUE", packed)
    assert list(catalogue.studies()) == ["other"]
    assert list(catalogue.recipes()) == ["thing"]


def test_what_a_checkout_shows_is_its_own_file_not_the_link_that_the_wheel_is_made_from() -> None:
    assert "_catalogue" not in catalogue.find_study("percona-2016").parts
    assert "_catalogue" not in catalogue.recipes()["mariadb"].parts
