"""Stores and pages of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.store.conftest import make_plan, make_record, stage

from tare.live.app import application
from tare.live.look import StoreReader
from tare.live.watch import Watch
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.store import Writer, resume_store
from tare.store_place import Place
from tare.study.model import Arm

TOKEN = "a-token-of-the-tests"
PORT = 8273
HOSTILE = "<script>alert(1)</script>\n\u202eright to left" + "x" * 10_000
LINK = "/"
"""Of the page, for whoever has been given its token."""


def plan_of(
    arms: Sequence[str] = ("a", "b"), blocks: int = 2, question: str = "Which?", workload: str = "fake"
) -> Plan:
    """A plan with arms of these names, which a study file may not all have; runs are named without them."""
    study = make_plan(blocks=blocks, question=question).study
    settings = study.arms[0].settings.model_copy(update={"workload_name": workload})
    made = tuple(Arm(name=name, levels={"arm": name}, settings=settings) for name in arms)
    named = {"arms": made, "baseline": arms[0], "factors": {"arm": tuple(arms)}}
    plan = expand(study.model_copy(update=named), 1)
    runs = tuple(run.model_copy(update={"id": f"b{run.block:02}-{run.position}"}) for run in plan.runs)
    return plan.model_copy(update={"runs": runs})


def fill(writer: Writer, plan: Plan, indices: Sequence[int], **parts: Any) -> None:
    """Commit a good run for each place in the plan."""
    for index in indices:
        commit(writer, make_record(plan, index, **parts))


def commit(writer: Writer, record: RunRecord) -> None:
    stage(writer, record)
    writer.commit(record)


def page_of(path: Place, looks: int = 1, token: str | None = TOKEN) -> TestClient:
    """A browser that was given `token`; its streams of events end after so many rounds."""
    left = iter([False] * looks)
    watch = Watch(StoreReader.at(path), stopping=lambda: next(left, True))
    return TestClient(application(watch.reader, watch, TOKEN, script=lambda: b"// no charts"),
                      base_url=f"http://127.0.0.1:{PORT}" + (f"/{token}" if token is not None else ""))  # fmt: skip


def status(page: TestClient, last_seen: str | None = None) -> tuple[Mapping[str, Any], str | None]:
    """Part → its content, as one stream of events tells, and the id of its last event."""
    headers = {} if last_seen is None else {"Last-Event-ID": last_seen}
    parts, ident = {}, None
    for line in page.get("/events", headers=headers).text.splitlines():
        if line.startswith("id: "):
            ident = line[4:]
        if line.startswith("data: {") and '"name"' in line:
            part = json.loads(line[6:])
            parts[part["name"]] = part["content"]
    return parts, ident


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Path:
    """A store of which one block is made, and one run of the next has failed."""
    plan = plan_of()
    with resume_store(path, plan) as writer:
        fill(writer, plan, (0, 1))
        commit(writer, make_record(plan, 2, ok=False))
    return path


@pytest.fixture
def visit(store: Path) -> Callable[..., TestClient]:
    """A page that has been opened by its link."""

    def opened(path: Path = store, looks: int = 1) -> TestClient:
        page = page_of(path, looks)
        assert page.get(LINK).status_code == 200
        return page

    return opened
