from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import StoreError
from tare.store_place import parse_store_url

URL = "postgresql://tare@db.example:5433/benchmarks?store=percona&raw=s3://results/tare"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path))


@pytest.mark.parametrize("text", ["percona-full-store", "/var/store", "a:b", "postgresql:/x"])
def test_a_directory_stays_a_directory(text: str) -> None:
    place = parse_store_url(text)
    assert place.is_directory
    assert (place.directory, str(place)) == (Path(text), text)


def test_a_url_is_taken_apart_and_printed_as_it_can_be_given_again(tmp_path: Path) -> None:
    place = parse_store_url(f"{URL}&sslmode=require")
    assert not place.is_directory
    assert place.database == "postgresql+psycopg://tare@db.example:5433/benchmarks?sslmode=require"
    assert (place.name, place.raw) == ("percona", "s3://results/tare")
    assert place.directory.parent == tmp_path / "stores"
    assert parse_store_url(str(place)) == place


def test_a_server_may_be_named_by_its_socket() -> None:
    place = parse_store_url("postgres:///benchmarks?host=/run/postgresql&raw=file:///shared")
    assert place.database == "postgresql+psycopg:///benchmarks?host=/run/postgresql"
    assert place.name == "tare"
    assert parse_store_url(str(place)) == place


def test_each_store_is_worked_on_in_a_directory_of_its_own_whoever_asks() -> None:
    same = [URL, URL.replace("tare@", "other@"), URL.replace("postgresql:", "postgresql+psycopg:")]
    assert len({parse_store_url(each).directory for each in same}) == 1
    others = [URL, URL.replace("percona", "other"), URL.replace("5433", "5434"), URL.replace("/benchmarks", "/b")]
    assert len({parse_store_url(each).directory for each in others}) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mysql://h/d?raw=s3://b", "cannot be at mysql://.*postgresql://USER@HOST"),
        ("postgresql://h?raw=s3://b", "names no database"),
        ("postgresql://h:port/d?raw=s3://b", "cannot be read"),
        ("postgresql://h/d", r"where the raw files are \(add raw=s3://"),
        ("postgresql://h/d?raw=directory", "where the raw files are"),
        ("postgresql://h/d?store=A&raw=s3://b", "store=A.? is not a valid name"),
        ("postgresql://h/d?store=&raw=s3://b", "store=.{0,3} is not a valid name"),
        ("postgresql://h/d?store=x;drop&raw=s3://b", "is not a valid name"),
        ("postgresql://u:SECRET@h/d?raw=s3://b", "contains a password.*PGPASSFILE"),
        ("postgresql://u@h/d?password=SECRET&raw=s3://b", "contains a password.*PGPASSFILE"),
        ("postgresql://u@h/d?raw=s3://key:SECRET@b/p", "contains a user or a password"),
    ],
)
def test_what_is_no_store_is_refused_and_no_password_is_repeated(text: str, words: str) -> None:
    with pytest.raises(StoreError, match=words) as refused:
        parse_store_url(text)
    assert "SECRET" not in str(refused.value)
