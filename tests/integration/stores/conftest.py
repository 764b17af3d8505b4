from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.stores.servers import (
    BUCKET,
    BucketServer,
    DatabaseServer,
    bucket_server,
    database_server,
)

from tare.store_place import StorePlace, parse_store_url


@pytest.fixture(scope="session")
def database() -> Iterator[DatabaseServer]:
    with database_server() as server:
        yield server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: DatabaseServer) -> Path:
    """Where this machine keeps copies; the password is in libpq's own file."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PGPASSFILE", str(database.pgpass))
    return tmp_path / "home"


@pytest.fixture
def place(database: DatabaseServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StorePlace]:
    """Of a store that is not there yet, its raw files in a directory that machines might share."""
    name = "of-" + str(abs(hash(request.node.nodeid)) % 10**12)
    yield parse_store_url(database.url(f"file://{tmp_path}/raw", name))
    database.query(f'DROP SCHEMA IF EXISTS "{name}" CASCADE', "benchmarks")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[StorePlace], StorePlace]:
    """The same store as another machine sees it: with a home of its own, empty."""

    def seen(place: StorePlace) -> StorePlace:
        monkeypatch.setenv("TARE_HOME", str(tmp_path / "another-home"))
        return parse_store_url(str(place))

    return seen


@pytest.fixture(scope="session")
def bucket() -> Iterator[BucketServer]:
    with bucket_server() as server:
        yield server


@pytest.fixture
def in_bucket(place: StorePlace, bucket: BucketServer, monkeypatch: pytest.MonkeyPatch) -> StorePlace:
    """Of a store whose raw files lie in a bucket of the real S3 server."""
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    return parse_store_url(str(place).replace(place.raw, f"s3://{BUCKET}/{place.name}"))
