"""Raw files in a bucket of a real S3 server."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.stores.servers import BucketServer
from tests.unit.store.conftest import make_plan, make_record, stage

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.store import open_store, resume_store, verify
from tare.store_place import StorePlace, parse_store_url

pytestmark = pytest.mark.slow  # the server is built from its source

Elsewhere = Callable[[StorePlace], StorePlace]
MIB = 2**20


def committed(place: StorePlace, content: str = "out\n") -> RunRecord:
    plan = make_plan()
    record = make_record(plan, 0)
    with resume_store(place, plan) as writer:
        stage(writer, record, content)
        writer.commit(record)
    return record


def of_store(bucket: BucketServer, place: StorePlace) -> list[Path]:
    return [path for path in bucket.objects if place.name in path.parts]


def test_raw_files_are_read_back_on_another_machine(
    in_bucket: StorePlace, bucket: BucketServer, elsewhere: Elsewhere
) -> None:
    record = committed(in_bucket, "hello\n")
    assert [path.read_text() for path in of_store(bucket, in_bucket)] == ["hello\n"]
    read = open_store(elsewhere(in_bucket))
    assert read.raw(record, "measure.stdout").read_text() == "hello\n"
    assert verify(read) == ()


def test_equal_files_are_kept_once(in_bucket: StorePlace, bucket: BucketServer) -> None:
    plan = make_plan()
    with resume_store(in_bucket, plan) as writer:
        for index in range(3):
            record = make_record(plan, index, raw=("a", "b"))
            stage(writer, record, "same\n")
            writer.commit(record)
    assert len(of_store(bucket, in_bucket)) == 1
    assert verify(open_store(in_bucket)) == ()


def test_a_large_file_goes_in_parts_and_comes_in_pieces(
    in_bucket: StorePlace, bucket: BucketServer, elsewhere: Elsewhere
) -> None:
    """256 MiB; memory grows by far less, both ways."""
    plan = make_plan()
    record = make_record(plan, 0)
    with resume_store(in_bucket, plan) as writer:
        at = writer.staging / f"{record.run_id}-1"
        at.mkdir()
        with (at / "measure.stdout").open("wb") as large:
            for _ in range(32):
                large.write(os.urandom(8 * MIB))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        writer.commit(record)
    assert [path.stat().st_size for path in of_store(bucket, in_bucket)] == [256 * MIB]
    read = open_store(elsewhere(in_bucket))
    assert read.raw(record, "measure.stdout").stat().st_size == 256 * MIB
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 200


def test_a_damaged_object_and_a_removed_one_are_named(
    in_bucket: StorePlace, bucket: BucketServer, elsewhere: Elsewhere
) -> None:
    record = committed(in_bucket)
    (there,) = of_store(bucket, in_bucket)
    there.write_text("tuo\n")
    read = open_store(elsewhere(in_bucket))
    assert verify(read) == (f"raw file {record.run_id}-1/measure.stdout was changed",)
    with pytest.raises(StoreError, match="is not what was committed"):
        read.raw(record, "measure.stdout")
    there.unlink()
    assert verify(read) == (f"raw file {record.run_id}-1/measure.stdout is missing",)
    with pytest.raises(StoreError, match="is not at s3://results/"):
        read.raw(record, "measure.stdout")
    assert not [path for path in read.path.rglob("*") if path.is_file() and "copies" in path.parts]


def test_half_an_upload_is_no_object_and_the_next_one_makes_it_whole(
    in_bucket: StorePlace, bucket: BucketServer, elsewhere: Elsewhere
) -> None:
    """What a cut upload could leave at worst: a shorter object under the right name."""
    record = committed(in_bucket, "a longer text\n")
    (there,) = of_store(bucket, in_bucket)
    there.write_text("a lon")
    plan = make_plan()
    again = make_record(plan, 1)
    with resume_store(in_bucket, plan) as writer:
        stage(writer, again, "a longer text\n")
        writer.commit(again)
    read = open_store(elsewhere(in_bucket))
    assert verify(read) == ()
    assert read.raw(record, "measure.stdout").read_text() == "a longer text\n"


def test_a_bucket_that_is_not_there_is_named_and_no_record_is_kept(in_bucket: StorePlace) -> None:
    absent = parse_store_url(str(in_bucket).replace("s3://results/", "s3://absent/"))
    with pytest.raises(StoreError, match=r"the bucket of s3://absent/.* does not exist") as refused:
        committed(absent)
    assert "\n" not in str(refused.value)
    assert open_store(absent).records() == ()


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_named_and_not_shown(
    in_bucket: StorePlace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "not-the-right-one")
    with pytest.raises(StoreError, match=r"access to s3://results/.* is denied.*credentials") as refused:
        committed(in_bucket)
    assert "not-the-right-one" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert open_store(in_bucket).records() == ()


def test_credentials_of_a_profile_are_used(
    in_bucket: StorePlace, bucket: BucketServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, secret = (bucket.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    committed(in_bucket)
    assert len(of_store(bucket, in_bucket)) == 1
