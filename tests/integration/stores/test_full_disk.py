"""A full disk at the server of a shared store: one sentence, nothing lost, and it goes on once there is room."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.stores.servers import BUCKET, bucket_server, database_server
from tests.unit.store.conftest import make_plan, make_record

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.store import Writer, open_store, resume_store, verify
from tare.store_place import StorePlace, parse_store_url

BLOCKS = 60
AGAIN = "then run the same command again"


@contextmanager
def small_disk(mib: int) -> Iterator[Path]:
    """A file system of so many MiB in memory."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    at = Path(tempfile.mkdtemp(prefix="tare-small-disk-"))
    at.chmod(0o755)
    try:
        options = f"size={mib}m,mode=0755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], check=True, timeout=60)
        try:
            yield at
        finally:
            subprocess.run(["umount", str(at)], check=True, timeout=60)
    finally:
        at.rmdir()


def fill_up(disk: Path) -> Path:
    """A file that leaves no room."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for length in (2**20, 4096):
            while _written(file.fileno(), bytes(length)):
                continue
    return filler


def _written(descriptor: int, content: bytes) -> bool:
    try:
        return os.write(descriptor, content) == len(content)
    except OSError:
        return False


def commit(writer: Writer, index: int) -> None:
    record = make_record(writer.plan, index)
    at = writer.staging / f"{record.run_id}-1"
    at.mkdir(exist_ok=True)
    (at / "measure.stdout").write_text(f"{index}\n" * 1000)
    writer.commit(record)


def committed(writer: Writer, indices: Iterable[int], made: list[int]) -> None:
    for index in indices:
        commit(writer, index)
        made.append(index)


def full_and_emptied(place: StorePlace, plan: Plan, disk: Path, words: str) -> None:
    """Commit until the full disk refuses; look at the store; go on once there is room."""
    made = [0]
    with resume_store(place, plan) as writer:
        commit(writer, 0)
        filler = fill_up(disk)
        with pytest.raises(StoreError, match=words) as refused:
            committed(writer, range(1, len(plan.runs)), made)
    assert "\n" not in str(refused.value)
    assert AGAIN in str(refused.value)
    assert len(made) < len(plan.runs)
    filler.unlink()
    assert [record.run_id for record in open_store(place).records()] == [plan.runs[index].id for index in made]
    with resume_store(place, plan) as writer:
        for index in range(len(made), len(plan.runs)):
            commit(writer, index)
    assert [record.run_id for record in open_store(place).records()] == [run.id for run in plan.runs]
    assert verify(open_store(place)) == ()


def test_the_disk_of_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(160) as disk, database_server(disk) as server:
        monkeypatch.setenv("PGPASSFILE", str(server.pgpass))
        place = parse_store_url(server.url(f"file://{tmp_path}/raw", "full"))
        full_and_emptied(place, make_plan(blocks=BLOCKS), disk, "No space left on device")


def test_the_disk_of_raw_files(place: StorePlace) -> None:
    with small_disk(8) as disk:
        there = parse_store_url(str(place).replace(place.raw, f"file://{disk}/raw"))
        full_and_emptied(there, make_plan(blocks=2), disk, "has no space for the raw file measure.stdout")


@pytest.mark.slow  # the server is built from its source
def test_the_disk_of_a_bucket(place: StorePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(8) as disk, bucket_server(disk) as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        there = parse_store_url(str(place).replace(place.raw, f"s3://{BUCKET}/{place.name}"))
        full_and_emptied(there, make_plan(blocks=2), disk, "raw file measure.stdout")
