"""What the page tells of a store: states, figures, and hostile texts as texts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.live.conftest import HOSTILE, commit, fill, plan_of, status
from tests.unit.store.conftest import make_record

from tare.live.charts import specifications
from tare.live.look import StoreReader
from tare.live.parts import Part
from tare.live.status_file import StatusWriter
from tare.live.view import View
from tare.live.watch import Watch, ident, tags_of
from tare.record.run_record import Outcome, Phase
from tare.run.events import FromSite, Notice, RunStarted, SiteStands, Standing
from tare.store import resume_store

Visit = Callable[..., TestClient]


def test_each_run_has_its_state(visit: Visit) -> None:
    grid = status(visit())[0]["grid"]
    assert grid["blocks"] == 2
    assert sorted(arm["cells"] for arm in grid["arms"]) == ["gf", "gp"]


def test_a_run_made_good_by_a_second_attempt_is_told_apart(path: Path, visit: Visit) -> None:
    plan = plan_of()
    with resume_store(path, plan) as writer:
        commit(writer, make_record(plan, 2, attempt=2))
    assert sorted(arm["cells"] for arm in status(visit())[0]["grid"]["arms"]) == ["ga", "gp"]


def test_a_store_without_a_run_says_so(tmp_path: Path, visit: Visit) -> None:
    with resume_store(tmp_path / "empty", plan_of()):
        pass
    parts, _ = status(visit(tmp_path / "empty"))
    assert "No run yet" in parts["status"]
    assert "no arm can be compared" in parts["standing"]
    assert parts["trail"]["points"] == []
    assert parts["series"] == {"live": False, "awaited": False, "runs": []}


@pytest.mark.parametrize("fleet", [False, True])
def test_the_run_under_way_is_told_with_the_host_of_each_node(tmp_path: Path, visit: Visit, *, fleet: bool) -> None:
    """Records of earlier runs name their site, which hides no run of one site."""
    plan = plan_of()
    started = RunStarted(plan.runs[1], 1, {"sut-1": "a", "sut-2": "b", "client": "c"})
    with resume_store(tmp_path / "other", plan) as writer:
        commit(writer, make_record(plan, 0, site="rack"))
        herald = StatusWriter(writer.now, plan, writer.id, tmp_path)
        if fleet:
            herald.take(SiteStands("rack", Standing.AT_WORK))
        herald.take(FromSite("rack", started) if fleet else started)
        now = status(visit(tmp_path / "other"))[0]["now"]
    assert "sut-1 on a, sut-2 on b, client on c" in now
    assert ('<table class="sites">' in now) is fleet


def test_intervals_are_told_after_each_block(tmp_path: Path, visit: Visit) -> None:
    plan = plan_of(blocks=5)
    with resume_store(tmp_path / "other", plan) as writer:
        for index, run in enumerate(plan.runs):
            rate = {"a": 100.0, "b": 90.0 + run.block}[run.arm]
            windows = [{"end_s": 1.0, "throughput_per_s": rate}]
            told_by = {"throughput_per_s": rate, "unit": "requests", "windows": windows}
            commit(writer, make_record(plan, index, measurement=told_by))
    parts = status(visit(tmp_path / "other"))[0]
    points = parts["trail"]["points"]
    assert parts["series"]["runs"][0]["unit"] == "requests"
    assert [point["blocks"] for point in points] == [1, 2, 3, 4, 5]
    assert [point["low"] is None for point in points] == [True, True, False, False, False]
    assert points[0]["point"] == -9.0
    standing = parts["standing"]
    assert "too narrow and there is no control." in standing
    assert "costs 5.0 to 9.0 % of throughput" in standing


def test_a_viewer_who_comes_back_is_sent_what_changed_and_nothing_else(
    path: Path, store: Path, visit: Visit
) -> None:
    parts, seen = status(visit())
    assert len(parts) == 9
    assert status(visit(), seen) == ({}, None)
    plan = plan_of()
    with resume_store(path, plan) as writer:
        commit(writer, make_record(plan, 3))
    changed, _ = status(visit(), seen)
    assert {"status", "grid", "standing", "trail"} <= set(changed)
    assert "reports" not in changed


def test_what_is_no_id_of_ours_is_answered_with_everything(visit: Visit) -> None:
    for given in ("", "nonsense", "a.b", "." * 500):
        assert len(status(visit(), given)[0]) == 9


def test_an_id_names_the_tag_of_each_part() -> None:
    tags = dict.fromkeys(("status", "grid"), "12345678")
    assert {name: tag for name, tag in tags_of(ident(tags)).items() if tag != "-"} == tags


def test_two_viewers_cost_one_look_and_are_told_the_same(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[View] = []
    look = StoreReader.look

    def counted(looking: StoreReader) -> View:
        looks.append(look(looking))
        return looks[-1]

    async def watched() -> list[Sequence[Part]]:
        watch = Watch(StoreReader.at(store))
        async with aclosing(watch.changes({})) as one, aclosing(watch.changes({})) as other:
            monkeypatch.setattr(StoreReader, "look", counted)
            return [await anext(one), await anext(other)]

    first, second = asyncio.run(watched())
    assert first == second
    assert len(first) == 9
    assert len(looks) == 1


def _hostile(path: Path) -> None:
    plan = plan_of(("a", HOSTILE), question=HOSTILE)
    with resume_store(path, plan) as writer:
        outcome = Outcome(ok=False, reason=HOSTILE, failed_in=Phase.MEASURE)
        commit(writer, make_record(plan, 0, ok=False, outcome=outcome, notices=(HOSTILE,)))
        fill(writer, plan, (1, 2, 3))
        herald = StatusWriter(writer.now, plan, writer.id, path)
        herald.take(Notice(HOSTILE))
        herald.end(HOSTILE)
    (path / "<script>.html").write_text("<script>alert(1)</script>")


def test_hostile_texts_stay_texts_and_are_cut(tmp_path: Path, visit: Visit) -> None:
    _hostile(tmp_path / "other")
    page = visit(tmp_path / "other")
    parts, _ = status(page)
    worded = [parts[name] for name in ("status", "now", "standing", "log", "reports")]
    pages = [page.get("/").text, page.get("/arm/0").text, page.get("/arm/1").text, *worded]
    for html in pages:
        assert "<script>alert" not in html
        assert "\u202e" not in html
        assert len(html) < 30_000
    assert "&lt;script&gt;alert(1)" in parts["log"]
    drawn = json.dumps([parts["grid"], parts["trail"]], ensure_ascii=False)
    assert "\u202e" not in drawn
    assert "\\n" not in drawn
    assert len(drawn) < 4_000


def test_a_report_is_shown_but_nothing_in_it_may_run(store: Path, visit: Visit) -> None:
    (store / "report.html").write_text("<script>alert(1)</script>")
    page = visit()
    assert "report.html" in status(page)[0]["reports"]
    answer = page.get("/report/report.html")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-security-policy"].startswith(
        "sandbox allow-downloads; default-src 'none'"
    )  # its study can be saved


def test_a_report_whose_name_is_no_text_is_left_out_and_the_others_stay(store: Path, visit: Visit) -> None:
    for name in (b"report.html", b"\xff\x1b.html"):
        (store / os.fsdecode(name)).write_text("<p>")
    listed = status(visit())[0]["reports"]
    assert "report.html" in listed
    assert listed.count("<li>") == 1


def test_no_other_file_of_the_machine_can_be_had(store: Path, visit: Visit) -> None:
    (store / "link.html").symlink_to("/etc/passwd")
    page = visit()
    for name in ("link.html", "store.sqlite", "..%2fstore.sqlite", "%2fetc%2fpasswd", "..%2f..%2fetc%2fpasswd"):
        assert page.get(f"/report/{name}").status_code == 404
    assert page.get("/report/../../etc/passwd").status_code == 403  # the client itself leaves out the token then
    assert page.get("/static/..%2f__init__.py").status_code == 404
    assert page.get("/arm/99").status_code == 404


def test_an_interval_by_itself_is_drawn_and_blocks_are_whole() -> None:
    trail = json.dumps(specifications()["trail"])
    assert '"type": "rule"' in trail
    assert "format(datum.value, 'd')" in trail


def test_the_knowledge_base_is_there(visit: Visit) -> None:
    text = visit().get("/knowledge").text
    assert "percona-2016-published-port" in text
    assert text.count("could not be told to come from the container or from compaction") == 1
    assert "\N{MINUS SIGN}69.0\N{NO-BREAK SPACE}%" in text


def _of_720_runs(path: Path) -> None:
    plan = plan_of([f"threads-{threads}-cache-{cache}" for threads in range(72) for cache in (0, "auto")], blocks=5)
    measured: dict[str, Any] = {"unit": "operations"}
    rates = [1000.0 + 7 * (index % 11) for index in range(len(plan.runs))]
    trees = [{**measured, "throughput_per_s": rate} for rate in rates]
    trees[-1]["windows"] = [
        {"end_s": float(at), "throughput_per_s": 1234.5, "latency_p95_ms": 12.34} for at in range(1800)
    ]
    with resume_store(path, plan) as writer:
        writer.commit_all([make_record(plan, index, measurement=tree, raw=()) for index, tree in enumerate(trees)])


def test_720_runs_are_told_in_few_bytes(tmp_path: Path, visit: Visit) -> None:
    _of_720_runs(tmp_path / "other")
    page = visit(tmp_path / "other")
    parts, _ = status(page)
    sizes = {name: len(json.dumps(content)) for name, content in parts.items()}
    assert sum(len(arm["cells"]) for arm in parts["grid"]["arms"]) == 720
    assert sizes["grid"] < 10_000
    assert sizes["standing"] < 50_000
    assert 1_000 < sizes["series"] < 10_000
    assert sizes["trail"] < 20_000
    assert sum(sizes.values()) < 100_000
    assert len(page.get("/arm/0").content) < 10_000
