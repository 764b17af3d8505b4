"""The page names an emulated arm with its mark, while it runs and afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient
from tests.unit.live.conftest import fill, plan_of, status

from tare.live.look import StoreReader
from tare.live.status_file import StatusWriter
from tare.run.events import Emulated, RunEnded, RunStarted
from tare.store import resume_store

Visit = Callable[[Path], TestClient]

BARE, GUEST = "barearm", "guestarm"


def unmarked(text: str) -> list[str]:
    flat = " ".join(text.split())
    return [
        flat[one.start() - 30 : one.end()]
        for one in re.finditer(GUEST, flat)
        if flat[one.start() - 11 : one.start()] != "(emulated) "
    ]


def test_every_part_of_the_page_marks_an_emulated_arm(tmp_path: Path, visit: Visit) -> None:
    path, plan = tmp_path / "other", plan_of((BARE, GUEST), blocks=3)
    guest = [n for n, run in enumerate(plan.runs) if run.arm == GUEST]
    with resume_store(path, plan) as writer:
        fill(writer, plan, [n for n in range(len(plan.runs)) if n not in guest])
        fill(writer, plan, guest, emulated=("sut",))
        herald = StatusWriter(writer.now, plan, writer.id, path)
        for record in writer.records():
            herald.take(RunEnded(record))
    page = visit(path)
    parts, _ = status(page)
    detail = page.get("/arm/1").text.replace(f"arm: {GUEST}", "")  # the level is called so too
    for part in (*(json.dumps(each) for each in parts.values()), detail):
        assert unmarked(part) == []
    assert [row["name"] for row in parts["grid"]["arms"]] == [BARE, f"(emulated) {GUEST}"]
    assert f"(emulated) {GUEST}" in parts["standing"]
    assert {row["arm"] for row in parts["trail"]["points"]} <= {BARE, f"(emulated) {GUEST}"}
    assert parts["series"]["runs"][0]["run"].startswith("(emulated) ")
    assert parts["log"].count("(emulated) ") == len(guest)


def test_a_run_under_way_is_marked_as_soon_as_it_is_known(tmp_path: Path) -> None:
    path, plan = tmp_path / "other", plan_of((BARE, GUEST))
    first = next(run for run in plan.runs if run.arm == GUEST)
    with resume_store(path, plan) as writer:
        herald = StatusWriter(writer.now, plan, writer.id, path)
        herald.take(RunStarted(first, 1))
        reader = StoreReader.at(path)
        assert reader.view.names[GUEST] == GUEST
        herald.take(Emulated(first, ("client",)))
        view = reader.look()
        assert view.names[GUEST] == f"(emulated) {GUEST}"
        assert view.run_name(first.id, first.arm) == f"(emulated) {first.id}"
        assert view.names[BARE] == BARE
