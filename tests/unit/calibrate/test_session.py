"""The whole pipeline with fakes: studies are run, stored, gone on with, and a known effect comes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.conftest import Rig, a_rig, make_plan

from tare import __version__
from tare.calibrate.archive import Archive, Place, StudyResult
from tare.calibrate.kinds import Contrast, Injection, Kind, Raw
from tare.calibrate.session import Session, calibrate, next_place
from tare.calibrate.summary import Effort, Identity
from tare.plan.expand import CONTROL, expand
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.events import Event, Observer, RunStarted
from tare.run.resume import StudyState
from tare.store import open_store
from tare.study.model import Arm, Study
from tare.study.protocol_spec import InterleaveSpec

HERE = Identity(cpu_model="A", cpu_count=2, memory_gib=8, kernel="6", engine=None, engine_version=None)
BLOCKS = 3


def study(number: int, *, times: int = 1) -> Study:
    """A fake server that takes twice as long for an answer, against one that does not; all `times` as long."""
    delays_ms = {"quick": 10 * times, "slow": 20 * times}
    phases: dict[str, Any] = {"measure_s": 0.1 * times, "window_s": 0.05 * times}
    arms = {name: make_plan(settings={"delay_ms": ms}, **phases).study.arms[0] for name, ms in delays_ms.items()}
    made = make_plan(protocol=InterleaveSpec(blocks=BLOCKS, target=None, seed=number)).study
    return made.model_copy(
        update={
            "arms": tuple(
                Arm(name=name, levels={"delay": name}, settings=each.settings) for name, each in arms.items()
            ),
            "baseline": "quick",
            "factors": {"delay": tuple(arms)},
            "varies": {"delay": ("sut.settings.delay_ms",)},
        }
    )


def by_setting(record: RunRecord, raw: Raw) -> float | None:
    """What the fake's throughput is proportional to, but for what asking itself takes."""
    del raw
    return 1 / float(record.settings["sut"]["settings"]["delay_ms"])


KIND = Kind(
    "a slower fake",
    study,
    (Contrast(CONTROL, "quick"), Contrast("slow", "quick", Injection("twice as slow", by_setting))),
)


@dataclass
class Hours:
    """A clock on which a minute passes whenever somebody looks."""

    minutes: float = 0.0

    def wall(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        self.minutes += 1
        return 60 * self.minutes

    def sleep(self, seconds: float) -> None:
        self.minutes += seconds / 60


@dataclass
class Destination:
    """A calibration on a machine of fakes; `stop_at`: which run from now on is broken into."""

    rig: Rig
    archive: Archive
    started: list[str] = field(default_factory=list)
    stop_at: int | None = None

    def session(self) -> Session:
        return Session(
            archive=self.archive,
            identity=HERE,
            kinds=["fake"],
            machine=lambda _, references: replace(self.rig.machine, references=references),
            watch=self.watch,
            clock=Hours(),
        )

    @contextmanager
    def watch(self, place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        def observe(event: Event) -> None:
            if isinstance(event, RunStarted):
                if self.stop_at is not None and len(self.started) >= self.stop_at:
                    raise KeyboardInterrupt
                self.started.append(f"{place.path.name} {event.run.id}")

        yield observe


@pytest.fixture
def destination(tmp_path: Path) -> Iterator[Destination]:
    with a_rig(tmp_path) as rig:
        yield Destination(rig, Archive(tmp_path / "calibration", {"fake": KIND}))


@pytest.mark.timed
def test_a_known_effect_is_recovered_and_the_numbers_go_on(destination: Destination) -> None:
    """Its delays are long against what a busy machine adds to a sleep."""
    slowly = replace(KIND, make=lambda number: study(number, times=6))
    destination.archive = Archive(destination.archive.root, {"fake": slowly})
    summary = calibrate(destination.session(), None, studies=1)
    (effect,) = summary.injections
    assert effect.estimate.point == pytest.approx(-0.47, abs=0.12)
    assert effect.truth.point == pytest.approx(-0.5)
    assert summary.false_positives.of == 1
    assert summary.effort.runs == 3 * BLOCKS
    assert destination.archive.summaries(HERE.machine_key) == (summary,)
    assert not destination.rig.leftovers
    again = next_place(destination.archive, HERE, ["fake"])
    assert again.path.name == "fake-0002"
    assert open_store(destination.archive.places(HERE)[0].path).plan.seed == 1
    assert expand(KIND.make(again.number)).seed == 2


def test_what_is_broken_off_is_gone_on_with_and_nothing_is_run_twice(destination: Destination) -> None:
    destination.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        calibrate(destination.session(), None, studies=1)
    assert destination.archive.summarise(HERE).effort.studies == 0
    destination.stop_at = None
    assert calibrate(destination.session(), None, studies=1).effort.studies == 1
    assert len(destination.started) == len(set(destination.started)) == 3 * BLOCKS


def test_the_time_limit_ends_it_between_two_runs(destination: Destination) -> None:
    assert calibrate(destination.session(), 3).effort.studies == 0
    assert 0 < len(destination.started) < 3 * BLOCKS


def test_a_study_that_another_tare_has_left_unfinished_is_passed_over(destination: Destination) -> None:
    destination.stop_at = 1
    with pytest.raises(KeyboardInterrupt):
        calibrate(destination.session(), None, studies=1)
    assert next_place(destination.archive, HERE, ["fake"]).number == 1
    other = replace(KIND, make=lambda number: study(number + 100))
    assert next_place(Archive(destination.archive.root, {"fake": other}), HERE, ["fake"]).number == 2


def test_kinds_take_turns_and_one_that_is_new_catches_up(tmp_path: Path) -> None:
    archive = Archive(tmp_path, {"old": KIND, "new": KIND})
    for number in (1, 2):
        place = archive.place(HERE, "old", number)
        place.path.mkdir(parents=True)
        result = StudyResult(
            tare=__version__,
            observed=(),
            effort=Effort(studies=1, runs=1, failed=0, machine_s=1.0, finished_at=1.0),
        )
        place.path.with_name(f"{place.path.name}.json").write_text(result.model_dump_json())
    assert next_place(archive, HERE, ["old", "new"]).path.name == "new-0001"
    assert next_place(archive, HERE, ["old"]).path.name == "old-0003"
