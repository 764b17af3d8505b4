"""Raw files behind fsspec: in a directory, and in a bucket of moto's server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.unit.store.conftest import make_plan, make_record

from tare.errors import EnvironmentLacks, StoreError
from tare.record.run_record import RunRecord
from tare.store.raw import RawFile, SharedFiles, file_digest, file_system

NAMES = ("a", "b/c", "b/d", "empty")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["file", "s3"])
def url(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/raw"
    endpoint = request.getfixturevalue("bucket")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint),
    ):
        monkeypatch.setenv(name, value)
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="results")
    return f"s3://results/{tmp_path.name}"


@pytest.fixture
def record() -> RunRecord:
    return make_record(make_plan(), 0, raw=NAMES)


def staged(at: Path, record: RunRecord) -> list[RawFile]:
    """Files whose content is their name; one has none."""
    own = at / f"{record.run_id}-{record.attempt}"
    for name in record.raw:
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("" if name == "empty" else f"{name}\n")
    return [
        RawFile(record.run_id, record.attempt, name, (own / name).stat().st_size, file_digest(own / name))
        for name in record.raw
    ]


def files_at(url: str, copies: Path, known: Sequence[RawFile]) -> SharedFiles:
    return SharedFiles(url, copies, lambda _: {file.name: file for file in known})


def test_what_one_machine_keeps_another_reads(url: str, tmp_path: Path, record: RunRecord) -> None:
    known = staged(tmp_path / "staging", record)
    files_at(url, tmp_path / "one", known).keep(tmp_path / "staging", known, [f"{record.run_id}-1"])
    other = files_at(url, tmp_path / "other", known)
    part = other.path(record, "b")
    assert {path.name: path.read_text() for path in part.iterdir()} == {"c": "b/c\n", "d": "b/d\n"}
    assert not other.path(record, "b/c").parent.with_name("a").exists()
    assert (other.path(record, "") / "empty").read_bytes() == b""
    assert {file.name: wrong for file, wrong in other.check(known)} == dict.fromkeys(NAMES)


def test_what_is_kept_again_is_not_sent_again_and_a_short_object_is(
    url: str, tmp_path: Path, record: RunRecord
) -> None:
    known = staged(tmp_path / "staging", record)
    files_at(url, tmp_path / "one", known).keep(tmp_path / "staging", known, [f"{record.run_id}-1"])
    system, root = file_system(url)
    key = f"{root}/sha256/{known[0].sha256[:2]}/{known[0].sha256}"
    system.pipe_file(key, b"")
    again = staged(tmp_path / "staging", record)
    files_at(url, tmp_path / "two", again).keep(tmp_path / "staging", again, [f"{record.run_id}-1"])
    assert system.cat_file(key) == b"a\n"


def test_a_changed_and_a_missing_file_are_told_apart(url: str, tmp_path: Path, record: RunRecord) -> None:
    known = staged(tmp_path / "staging", record)
    files_at(url, tmp_path / "one", known).keep(tmp_path / "staging", known, [f"{record.run_id}-1"])
    system, root = file_system(url)
    keys = [f"{root}/sha256/{file.sha256[:2]}/{file.sha256}" for file in known]
    system.pipe_file(keys[0], b"z\n")
    system.rm_file(keys[1])
    other = files_at(url, tmp_path / "other", known)
    assert [wrong for _, wrong in other.check(known)] == ["was changed", "is missing", None, None]
    with pytest.raises(StoreError, match="is not what was committed"):
        other.path(record, "a")
    with pytest.raises(StoreError, match="is not at"):
        other.path(record, "b/c")
    assert [path for path in (tmp_path / "other").rglob("*") if path.is_file()] == []


def test_a_missing_bucket_is_named(
    bucket: str, tmp_path: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket)
    known = staged(tmp_path / "staging", record)
    with pytest.raises(StoreError, match=r"the bucket of s3://absent/x does not exist \(create it"):
        files_at("s3://absent/x", tmp_path / "one", known).keep(tmp_path / "staging", known, [f"{record.run_id}-1"])
    assert (tmp_path / "staging" / f"{record.run_id}-1" / "a").exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, record: RunRecord) -> None:
    (tmp_path / "raw").write_text("a file")
    known = staged(tmp_path / "staging", record)
    with pytest.raises(StoreError, match=r"file://.*raw does not serve|access to file://.*raw is denied"):
        files_at(f"file://{tmp_path}/raw", tmp_path / "one", known).keep(
            tmp_path / "staging", known, [f"{record.run_id}-1"]
        )


def test_a_protocol_that_nobody_knows_is_named() -> None:
    with pytest.raises((StoreError, EnvironmentLacks), match="nosuch"):
        file_system("nosuch://place/x")
