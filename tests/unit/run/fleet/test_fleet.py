"""Blocks on several sites at once, with real processes of fake sites, killed and refusing."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tare.analyze import analyze
from tare.errors import EnvironmentLacks, StudyError
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.events import Event, Notice
from tare.run.execute import Destination
from tare.run.fleet.assignment import site_of_block
from tare.run.fleet.coordinator import execute_on
from tare.run.fleet.dispatcher import Fleet
from tare.run.fleet.workers import OwnWorkers
from tare.run.resume import StudyState
from tare.sites.file import SiteSpec
from tare.store import open_store, resume_store
from tare.study.protocol_spec import FixedSpec, InterleaveSpec

ROOT = Path(__file__).resolve().parents[4]
FAKES = (sys.executable, "-m", "tests.unit.run.fleet.fake_site")
MADE_UP = (sys.executable, "-m", "bench.fleet.made_up")


class Run:
    """A study on fake sites, into a store; what is killed when is the test's."""

    def __init__(self, room: Path, plan: Plan, sites: tuple[str, ...], command: tuple[str, ...] = FAKES) -> None:
        self.store, self.plan, self.sites, self.command = room / "store", plan, sites, command
        self.events: list[Event] = []
        self.workers: OwnWorkers | None = None

    def go(self) -> Generator[RunRecord]:
        """Each record once it is committed."""
        with resume_store(self.store, self.plan) as writer:
            made = writer.records()
            self.workers = OwnWorkers(
                [SiteSpec(name=site, sut="local", client="local") for site in self.sites], self.command
            )
            fleet = Fleet(self.sites, self.workers, self.store, patience_s=0.05)
            destination = Destination(writer.id, StudyState.from_records(made), writer.staging)
            for kept in execute_on(fleet, self.plan, destination, made, self.events.append):
                writer.commit_all(kept)
                yield from kept

    @property
    def records(self) -> tuple[RunRecord, ...]:
        return open_store(self.store).records()

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAKE_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def good(records: tuple[RunRecord, ...]) -> Counter[str]:
    return Counter(record.run_id for record in records if record.outcome.ok)


def test_every_run_is_made_once_and_each_block_on_the_site_that_the_seed_tells(room: Path, plans: Any) -> None:
    plan = plans(blocks=4, arms=("a", "b"))
    run = Run(room, plan, ("north", "south"))
    assert all(record.outcome.ok for record in run.go())
    assert good(run.records) == Counter(each.id for each in plan.runs)
    assert {(record.block, record.site) for record in run.records} == {
        (block, site_of_block(plan, run.sites, block)) for block in range(1, 5)
    }
    assert list((run.store / "staging").iterdir()) == []
    assert all((run.store / "raw" / f"{one.run_id}-1" / name).is_file() for one in run.records for name in one.raw)


def test_a_killed_process_loses_no_run_and_its_block_goes_on_at_its_site(room: Path, plans: Any) -> None:
    plan = plans(blocks=2, arms=("a", "b", "c"), measure_s=0.3)
    run = Run(room, plan, ("north", "south"))
    for n, record in enumerate(run.go()):
        if n == 0:
            assert run.workers is not None
            os.kill(run.workers.pids[record.site or ""], signal.SIGKILL)
    assert good(run.records) == Counter(each.id for each in plan.runs)
    assert all(len({one.site for one in run.records if one.block == block}) == 1 for block in (1, 2))
    assert any("1 of 3" in text for text in run.notices), run.notices


@pytest.mark.slow
def test_a_site_that_refuses_three_times_is_set_aside_and_its_blocks_go_elsewhere(room: Path, plans: Any) -> None:
    (room / "sites" / "south").mkdir(parents=True)
    (room / "sites" / "south" / "refuses").touch()
    plan = plans(blocks=3)
    run = Run(room, plan, ("north", "south"))
    list(run.go())
    assert {record.site for record in run.records} == {"north"}
    assert good(run.records) == Counter(each.id for each in plan.runs)
    assert any(text.startswith("south is set aside after 3") for text in run.notices), run.notices


def test_without_any_site_left_the_study_ends_and_names_the_reason(room: Path, plans: Any) -> None:
    for site in ("north", "south"):
        (room / "sites" / site).mkdir(parents=True)
        (room / "sites" / site / "refuses").touch()
    run = Run(room, plans(blocks=2), ("north", "south"))
    with pytest.raises(EnvironmentLacks, match=r"no site is left.*cannot be reached"):
        list(run.go())


@pytest.mark.slow
def test_what_a_lost_site_has_begun_is_given_up_by_name_and_taken_up_again_later(room: Path, plans: Any) -> None:
    plan = plans(blocks=2, arms=("a", "b"))
    run = Run(room, plan, ("north", "south"))
    going = run.go()
    first = next(going)
    going.close()
    rest = tuple(site for site in run.sites if site != first.site)
    without = Run(room, plan, (*rest, "west"))
    list(without.go())
    missing = [one for one in without.records if not one.outcome.ok]
    assert {one.block for one in missing} == {first.block}
    assert all("is not available" in (one.outcome.reason or "") for one in missing)
    again = Run(room, plan, run.sites)
    list(again.go())
    assert good(again.records) == Counter(each.id for each in plan.runs)
    assert {one.site for one in again.records if one.block == first.block} == {first.site}


@pytest.mark.slow
def test_nothing_is_left_running_when_the_study_is_broken_off(room: Path, plans: Any) -> None:
    run = Run(room, plans(blocks=4, arms=("a", "b")), ("north", "south"))
    going = run.go()
    next(going)
    assert run.workers is not None
    pids = list(run.workers.pids.values())
    going.close()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_one_site_and_four_give_the_same_set_of_runs_and_the_same_estimates(room: Path, plans: Any) -> None:
    plan = plans(blocks=12, arms=("a", "b", "c"), protocol=InterleaveSpec(blocks=12, target=None))
    one = Run(room / "1", plan, ("north",), MADE_UP)
    four = Run(room / "4", plan, ("north", "south", "east", "west"), MADE_UP)
    for run in (one, four):
        run.store.parent.mkdir()
        list(run.go())
    made = [{(r.run_id, r.block, r.position, r.arm, r.seed) for r in run.records} for run in (one, four)]
    assert made[0] == made[1]
    assert Counter(record.site for record in four.records) == dict.fromkeys(four.sites, len(plan.runs) // 4)
    alone, together = (analyze(plan.study, run.records).findings for run in (one, four))
    assert [each.arm for each in alone] == [each.arm for each in together]
    known = [pair for pair in zip(alone, together, strict=True) if pair[0].estimate.point is not None]
    assert {single.metric for single, _ in known} >= {"throughput", "latency_p95"}
    for single, several in known:
        assert several.over_sites is not None
        pooled = several.over_sites.pooled  # the interval over sites asks more than that over blocks
        same = [(each.point, each.low, each.high, each.n) for each in (single.estimate, pooled)]
        assert same[0] == pytest.approx(same[1], rel=1e-9)
        assert several.estimate.point == pytest.approx(single.estimate.point, rel=1e-9)


def test_runs_that_have_to_follow_each_other_take_one_site(room: Path, plans: Any) -> None:
    plan = plans(protocol=FixedSpec(name="fixed", blocks=2, control=False, sequence="together"))
    run = Run(room, plan, ("north", "south"))
    with pytest.raises(StudyError, match="needs one site"):
        list(run.go())
