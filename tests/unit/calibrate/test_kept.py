"""What reports quote is what this version reads off the stores, whatever an earlier one has kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.unit.analyze import synthetic

from tare import __version__
from tare.calibrate.archive import FORMAT, Archive, StudyResult, study_result
from tare.calibrate.session import MachineFor, Session, Watch, calibrate
from tare.calibrate.summary import Effort, Identity, Summary, identity_of, summarise

HERE = identity_of(synthetic.HOST, synthetic.ENGINE)
EFFORT = Effort(studies=3, runs=9, failed=0, machine_s=9.0, finished_at=1.0)


@dataclass
class Stores:
    """An archive of so many studies."""

    effort: Effort
    kept: list[Summary] = field(default_factory=list)

    def summarise(self, identity: Identity) -> Summary:
        return summarise(identity, [], self.effort, "now")

    def keep(self, summary: Summary) -> None:
        self.kept.append(summary)


class Over:
    """A clock on which the time is up as soon as it is looked at."""

    now = 0.0

    def wall(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def kept_after_no_time(effort: Effort) -> list[str]:
    def never(*_: object) -> None:
        raise AssertionError("nothing is to be run")

    stores = Stores(effort)
    machine, watch = cast("MachineFor", never), cast("Watch", never)
    session = Session(cast("Archive", stores), HERE, ["work"], machine, watch, Over())
    calibrate(session, 0)
    return [summary.tare for summary in stores.kept]


def test_the_figures_are_kept_anew_though_there_is_no_time_for_a_study() -> None:
    assert kept_after_no_time(EFFORT) == ["now"]


def test_nothing_is_kept_of_a_machine_of_which_nothing_is_known() -> None:
    assert kept_after_no_time(EFFORT.model_copy(update={"studies": 0})) == []


def test_what_an_earlier_format_has_read_is_not_taken_for_what_this_one_would_read(tmp_path: Path) -> None:
    place, beside = tmp_path / "work-0001", tmp_path / "work-0001.json"
    for layout, taken in ((FORMAT, True), (FORMAT - 1, False)):
        beside.write_text(
            StudyResult(format=layout, tare=__version__, observed=(), effort=EFFORT).model_dump_json()
        )
        assert (study_result("work", 1, place, {}) is not None) is taken
