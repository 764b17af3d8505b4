"""The live page of a store in a real PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.stores.servers import DatabaseServer
from tests.unit.live.conftest import LINK, page_of, plan_of, status
from tests.unit.store.conftest import make_record, stage
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError
from tare.live.look import StoreReader
from tare.run.resume import StudyState, decision
from tare.store import Writer, open_store, resume_store
from tare.store.outlines import state_of
from tare.store_place import StorePlace, parse_store_url

Elsewhere = Callable[[StorePlace], StorePlace]


def commit(writer: Writer, index: int, **parts: Any) -> None:
    record = make_record(writer.plan, index, **parts)
    stage(writer, record)
    writer.commit(record)


def visited(page: TestClient) -> TestClient:
    assert page.get(LINK).status_code == 200
    return page


def test_the_page_shows_what_was_committed_and_who_makes_more(place: StorePlace, elsewhere: Elsewhere) -> None:
    with resume_store(place, plan_of(blocks=4)) as writer:
        writer.take(1)  # type: ignore[attr-defined]  # a store at a URL is claimed by blocks
        for index in range(3):
            commit(writer, index, site="north")
        seen = elsewhere(place)
        parts, _ = status(visited(page_of(seen)))
        assert "A study is being run." in parts["status"]
        assert f"(process {os.getpid()})" in parts["status"]
        assert "north" in parts["now"]
        assert [row["cells"] for row in parts["grid"]["arms"]] in (["ggpp", "gppp"], ["gppp", "ggpp"])
    parts, _ = status(visited(page_of(seen)))
    assert "Not finished, and no `tare run` is working on it." in parts["status"]


def test_a_look_reads_new_attempts_alone_whatever_the_clock_of_their_tare(
    place: StorePlace, elsewhere: Elsewhere, database: DatabaseServer
) -> None:
    with resume_store(place, plan_of(blocks=4)) as writer:
        commit(writer, 0)
        reader = StoreReader.at(elsewhere(place))
        before = reader.view.known
        assert before is not None
        assert reader.look().known is before
        commit(writer, 1)
        late = f"UPDATE \"{place.name}\".runs SET committed_at = 5 WHERE run_id = '{writer.plan.runs[1].id}'"
        database.query(late, "benchmarks")
        known = reader.look().known
    assert known is not None
    assert set(known.attempts) == {run.id for run in writer.plan.runs[:2]}
    assert known.last is not None
    assert known.last.made.run_id == writer.plan.runs[1].id
    records = open_store(place).records()
    assert known.decision == decision(known.plan, StudyState.from_records(records))
    assert state_of(open_store(place)) == StudyState.from_records(records)


def test_a_server_that_goes_away_is_told_and_comes_back(
    place: StorePlace, elsewhere: Elsewhere, database: DatabaseServer
) -> None:
    with resume_store(place, plan_of()) as writer:
        commit(writer, 0)
    reader = StoreReader.at(elsewhere(place))
    database.stop()
    try:
        gone = reader.look()
        assert gone.problem is not None
        assert gone.known is not None
    finally:
        database.start()
    assert reader.look().problem is None


def test_where_there_is_no_store_no_page_is_started(place: StorePlace) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        StoreReader.at(place)


def test_serve_takes_a_url(place: StorePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with resume_store(place, plan_of()):
        pass
    monkeypatch.setattr("tare.live.serving.serve", lambda server, door: door.socket.close())
    done = CliRunner().invoke(app, ["serve", str(parse_store_url(str(place)))], catch_exceptions=False)
    assert done.stdout.startswith("http://127.0.0.1:")
