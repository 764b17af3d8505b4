"""Files from a worker's outbox: whole, gone on with where they were broken off, and none from anywhere else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.errors import EnvironmentLacks
from tare.record.run_record import RunRecord
from tare.run.fleet import delivery, outbox
from tare.run.fleet.delivery import Delivery
from tare.run.fleet.handover import hand_over, handed_over, staged_name
from tare.run.fleet.outbox import Outbox
from tare.run.interrupts import Interrupts

PIECE = 1000


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(delivery, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(outbox, "PATIENCE_S", 0.3)


class Worker:
    """An outbox with what a task handed over; `fails`: numbers of calls that do not get through."""

    def __init__(self, room: Path, files: dict[str, bytes], fails: tuple[int, ...] = ()) -> None:
        self.box, self.fails = Outbox(room / "outbox"), fails
        self.place = room / "outbox" / "task"
        self.record = synthetic.record(1, "bare", 1900.0).model_copy(update={"raw": tuple(files)})
        for name, content in files.items():
            path = self.place / staged_name(self.record) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        hand_over(self.place, 1, (self.record,))
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def ask(self, call: str, **given: Any) -> Any:
        self.calls.append((call, given))
        if len(self.calls) in self.fails:
            raise OSError("the connection was lost")
        return asyncio.run(self.box.calls()[call](**given))

    def offsets(self, end: str) -> list[int]:
        return [
            given["offset"] for call, given in self.calls if call == "tare_piece" and given["name"].endswith(end)
        ]


def fetched(room: Path, worker: Worker) -> tuple[RunRecord, Path]:
    spool = room / "spool"
    spool.mkdir(exist_ok=True)
    Delivery("task", spool, worker.ask, pause_s=0).fetch()
    ((_, (record,)),) = handed_over(spool)
    return record, spool / staged_name(record)


def test_records_and_raw_files_arrive_as_they_are_and_leave_the_outbox(tmp_path: Path) -> None:
    files = {"trace": bytes(range(256)) * 20, "client/out": b"", "again": bytes(range(256)) * 20}
    worker = Worker(tmp_path, files)
    record, raw = fetched(tmp_path, worker)
    assert record == worker.record
    assert {name: (raw / name).read_bytes() for name in files} == files
    assert list(worker.place.iterdir()) == []
    assert len(worker.offsets("again") + worker.offsets("trace")) == 6, "what has the same content came twice"
    assert list((tmp_path / "spool").glob("*.part")) == []


def test_a_file_goes_on_where_the_connection_was_lost(tmp_path: Path) -> None:
    worker = Worker(tmp_path, {"trace": b"x" * 4500}, fails=(3, 4, 6))
    _, raw = fetched(tmp_path, worker)
    assert (raw / "trace").read_bytes() == b"x" * 4500
    assert worker.offsets("trace") == [0, 1000, 1000, 1000, 2000, 2000, 3000, 4000]


def test_a_file_goes_on_from_what_an_earlier_delivery_had(tmp_path: Path) -> None:
    content = bytes(range(250)) * 10
    worker = Worker(tmp_path, {"trace": content}, fails=tuple(range(4, 30)))
    with pytest.raises(EnvironmentLacks, match="cannot be reached: the connection was lost"):
        fetched(tmp_path, worker)
    worker.fails, worker.calls = (), []
    _, raw = fetched(tmp_path, worker)
    assert (raw / "trace").read_bytes() == content
    assert worker.offsets("trace") == [2000]


def test_a_file_that_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    worker = Worker(tmp_path, {"trace": b"x" * 3000})
    honest = worker.ask

    def garbled(call: str, **given: Any) -> Any:
        answer = honest(call, **given)
        return b"y" * len(answer) if call == "tare_piece" and given["offset"] == 1000 else answer

    (tmp_path / "spool").mkdir()
    with pytest.raises(EnvironmentLacks, match="sha256"):
        Delivery("task", tmp_path / "spool", garbled, pause_s=0).fetch()
    assert list((tmp_path / "spool").glob("**/trace")) == []


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "."])
def test_nothing_outside_of_a_task_is_given_out(tmp_path: Path, name: str) -> None:
    worker = Worker(tmp_path, {"trace": b"x"})
    (tmp_path / "outbox" / "secret").write_text("secret")
    (worker.place / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="is no path below"):
        worker.ask("tare_piece", task="task", name=name, offset=0)
    with pytest.raises(ValueError, match="is no path below"):
        worker.ask("tare_handed_over", task="..")


@pytest.mark.parametrize("name", ["../store.sqlite", "/tmp/elsewhere"])
def test_nothing_is_written_outside_of_the_spool(tmp_path: Path, name: str) -> None:
    file = {"name": name, "bytes": 1, "sha256": "0" * 64}
    (tmp_path / "spool").mkdir()
    with pytest.raises(ValueError, match="is no path below"):
        Delivery("task", tmp_path / "spool", lambda *_, **__: [{"kept": "k", "files": [file]}]).fetch()


def test_a_finished_block_waits_until_it_is_fetched_and_not_for_ever(tmp_path: Path) -> None:
    box = Outbox(tmp_path / "outbox")
    with (
        pytest.raises(EnvironmentLacks, match="tare has fetched no results"),
        box.of("task", Interrupts()) as place,
    ):
        hand_over(place, 1, (synthetic.record(1, "bare", 1900.0),))
    assert list((tmp_path / "outbox").iterdir()) == []
