from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tare.errors import StoreError
from tare.store import open_store, raw, resume_store, verify
from tare.store import write as writing
from tare.store.rows import Facts, from_row, stored_digest, to_rows


def test_what_is_committed_is_read_back_unchanged(path: Path, plan: Any, make: Any, staged: Any) -> None:
    records = [make(plan, 0, ok=False), make(plan, 0, attempt=2), make(plan, 1, engine=None, path=None)]
    with resume_store(path, plan) as store:
        for record in records:
            staged(store, record)
            store.commit(record)
    read = open_store(path)
    assert read.records() == tuple(records)
    assert read.plan == plan
    assert verify(read) == ()


def test_a_raw_file_is_found_beside_its_record(path: Path, plan: Any, make: Any, staged: Any) -> None:
    record = make(plan, 0)
    with resume_store(path, plan) as store:
        staged(store, record, "hello\n")
        store.commit(record)
        assert store.raw(record, "measure.stdout").read_text() == "hello\n"
        assert list(store.staging.iterdir()) == []


def test_facts_that_repeat_are_kept_once(path: Path, plan: Any, make: Any, staged: Any) -> None:
    with resume_store(path, plan) as store:
        for index in range(3):
            record = make(plan, index)
            staged(store, record)
            store.commit(record)
        with store.reading() as connection:
            number = connection.exec_driver_sql("SELECT count(*) FROM facts").scalar_one()
        assert number == 4 + 2, "host, engine, images, what the server reported; and a setup for each of two arms"


def test_no_run_can_have_two_good_attempts(path: Path, plan: Any, make: Any, staged: Any) -> None:
    with resume_store(path, plan) as store:
        for attempt in (1, 2):
            record = make(plan, 0, attempt=attempt)
            staged(store, record)
            if attempt == 1:
                store.commit(record)
            else:
                with pytest.raises(StoreError, match="cannot be written"):
                    store.commit(record)
        assert [record.attempt for record in store.records()] == [1]


def test_a_record_whose_raw_files_are_not_staged_is_refused(path: Path, plan: Any, make: Any) -> None:
    with resume_store(path, plan) as store, pytest.raises(StoreError, match=r"names the raw files measure\.stdout"):
        store.commit(make(plan, 0))


@pytest.mark.parametrize("step", ["before the rename", "between rename and record", "in the record"])
def test_an_interrupted_commit_leaves_all_or_nothing(
    path: Path, plan: Any, make: Any, staged: Any, step: str
) -> None:
    class Killed(BaseException):
        """As sudden as kill -9: nothing that tare does afterwards counts."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    first, second = make(plan, 0), make(plan, 1)
    with pytest.raises(Killed), ExitStack() as stack, resume_store(path, plan) as store:  # noqa: PT012 - what dies is the last line
        staged(store, first)
        store.commit(first)
        staged(store, second)
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        if step == "before the rename":
            monkeypatch.setattr(raw, "move_all_durably", die)
        elif step == "between rename and record":
            monkeypatch.setattr(store.engine, "begin", die)
        else:
            monkeypatch.setattr(writing, "insert", die)
        store.commit(second)
    assert open_store(path).records() == (first,)
    with resume_store(path, plan) as store:
        assert list(store.staging.iterdir()) == []
        assert verify(store) == ()
        staged(store, second)
        store.commit(second)
        assert store.records() == (first, second)
        assert verify(store) == ()


def test_a_full_disk_loses_nothing_that_was_committed(
    path: Path, plan: Any, make: Any, staged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    first, second = make(plan, 0), make(plan, 1)
    with resume_store(path, plan) as store:
        staged(store, first)
        store.commit(first)
        staged(store, second)
        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(StoreError, match="No space left on device"):
            store.commit(second)
    monkeypatch.undo()
    assert open_store(path).records() == (first,)
    with resume_store(path, plan) as store:
        assert verify(store) == ()


_trees = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(host=_trees, measurement=_trees | st.none())
def test_any_json_survives_the_store(plan: Any, make: Any, host: Any, measurement: Any) -> None:
    record = make(plan, 0, host=host, measurement=measurement)
    rows = to_rows(record, 0.0)
    shared = Facts(rows.facts)
    again = from_row(rows.run, shared)
    assert again == record
    assert stored_digest(rows.run, shared) == rows.run["digest"]


def test_a_commit_needs_no_further_thread(
    path: Path, plan: Any, make: Any, staged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: fork failed while a run was committed."""

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    record = make(plan, 0)
    with resume_store(path, plan) as store:
        staged(store, record, "hello\n")
        monkeypatch.setattr(threading.Thread, "start", refused)
        store.commit(record)
    monkeypatch.undo()
    assert verify(open_store(path)) == ()
