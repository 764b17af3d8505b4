"""The content of a report, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tare.analyze import Analysis, analyze
from tare.analyze.answer import arm_answers
from tare.analyze.runs import folded
from tare.protocols.registry import rule_of, runs_of_blocks
from tare.record.emulated import with_marks
from tare.record.run_record import Phase, RunRecord
from tare.report.setting import Setting, setting_of
from tare.report.words.answer import answer, answer_head
from tare.report.words.answer_lines import phrase
from tare.report.words.headlines import Headline, headlines
from tare.report.words.log_output import on_log_output
from tare.report.words.loopback import on_loopback
from tare.report.words.notes import ended, legend, made, notes
from tare.report.words.other_image import other_images
from tare.report.words.turns import took_turns
from tare.run.ending import Ending
from tare.study.model import Study
from tare.traps.met import Met, recorded_traps, traps_behind

if TYPE_CHECKING:
    from tare.analyze.explain.explanation import Explanation
    from tare.analyze.factorial import Effect
    from tare.analyze.quantities import QuantityRow
    from tare.analyze.statistics.quantile_shift import QuantileShift
    from tare.analyze.timelines import Timelines
    from tare.analyze.timelines.runs import RunOverlay
    from tare.analyze.views.summary import RunViews


_NAMED_UNREAD = 3


@dataclass(frozen=True)
class Spent:
    """Machine time in seconds. `runs_s`: all phases of all attempts, failed ones too; `measure_s`: of good runs."""

    attempts: int
    runs_s: float
    measure_s: float
    began_at: float | None
    ended_at: float | None
    """Seconds since the epoch; `None` before the first run."""


@dataclass(frozen=True)
class Report:
    """Everything that an exporter needs. `planned`: runs of the plan. `run_notices`: of the runs, once each."""

    study: Study
    analysis: Analysis
    answer: str
    answer_head: str
    """What precedes the arms' lines: the baseline, and a caution if there is one."""
    arm_lines: tuple[tuple[str, str], ...]
    """Arm and what it costs, in a phrase; in the study's order."""
    headlines: tuple[Headline, ...]
    """Shown above the answer, as they say how far it can be trusted."""
    notes: tuple[str, ...]
    legend: tuple[str, ...]
    """Explanations of marks in tables, for exporters whose tables have such marks."""
    run_notices: tuple[str, ...]
    spent: Spent
    setting: Setting
    planned: int
    blind_to_stalls: bool
    """The generator waits for a stalled server (closed loop), so its latencies underestimate long stalls."""
    calibration: str | None = None
    """What calibration says of the runs' machine; `None` if it was not requested."""
    views: RunViews | None = None
    """Monitors' views of one run; read from its trace only if an exporter shows them."""
    timelines: Timelines | None = None
    """Timelines of one run of each arm; read from traces only if an exporter shows them."""
    quantities: tuple[QuantityRow, ...] = ()
    """Quantities that the study's source defines; read from all traces."""
    plan_digest: str | None = None
    """Digest of the last run's plan; `None` before the first run."""
    shifts: tuple[QuantileShift, ...] = ()
    """Shifts of latency by quantile; computed only if an exporter shows them."""
    effects: tuple[Effect, ...] = ()
    """Main effects and interactions of several factors; computed only if an exporter shows them."""
    explanation: Explanation | None = None
    """Where the time goes; read from raw files if runs sampled stacks, else `None`."""
    laid_over: RunOverlay | None = None
    """Single runs over time; read from raw files only if an exporter shows them."""
    unread: tuple[str, ...] = ()
    """Sentences on runs with a damaged file, once each."""
    traps: tuple[Met, ...] = ()
    """Known traps that set an arm apart from its baseline."""
    behind: Mapping[str, tuple[Met, ...]] = field(default_factory=dict)
    """Broken validity rule → known traps that break it and that its arms meet."""

    @property
    def answered(self) -> bool:
        """Whether an arm has an interval, so that the lines of the arms say something."""
        return any(finding.estimate.low is not None for finding in self.analysis.findings if not finding.control)

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices of the runs, and those on damaged files, of which a long list is cut."""
        left = len(self.unread) - _NAMED_UNREAD
        more = (f"and {left} more like these",) if left > 0 else ()
        return (*self.run_notices, *self.unread[:_NAMED_UNREAD], *more)


def build_report(  # noqa: PLR0913 - what a report is made of
    study: Study,
    records: Sequence[RunRecord],
    planned: int | None = None,
    ending: Ending | None = None,
    calibration: str | None = None,
    *,
    for_people: bool = True,
) -> Report:
    """Analyse the records and collect what a report shows; arms that differ only in conditions count as one.

    `for_people`: see `readable`. `planned`: `None` for every arm in every block. `ending`: why no further block is
    made, `None` if one is. Blocks after the ending do not count as planned, nor do runs of arms that had ended
    before.
    """
    planned = (
        runs_of_blocks(study, study.protocol.blocks * rule_of(study).blocks_each) if planned is None else planned
    )
    planned = planned if ending is None else min(planned, runs_of_blocks(study, ending.blocks))
    if ending is not None and ending.margin is not None:
        planned = min(planned, len({record.run_id for record in records}))
    study, records = readable(study, records, for_people=for_people)
    analysis, spent = analyze(study, records), _spent(records)
    block_s = spent.runs_s / len(analysis.blocks) if analysis.blocks and study.imported is None else None
    return Report(
        study=study,
        analysis=analysis,
        answer=answer(study, analysis, block_s),
        answer_head=answer_head(study, analysis),
        arm_lines=tuple((each.finding.arm, phrase(each, block_s)) for each in arm_answers(study, analysis)),
        headlines=(*other_images(study, records), *headlines(study, analysis, block_s)),
        notes=(
            *ended(ending),
            *made(records),
            *on_loopback(study, records),
            *on_log_output(study, records),
            *took_turns(study, records),
            *notes(analysis, planned),
        ),
        legend=legend(analysis),
        run_notices=tuple(dict.fromkeys(notice for record in records for notice in record.notices)),
        spent=spent,
        setting=setting_of(study, records),
        planned=planned,
        blind_to_stalls=any(_is_blind_to_stalls(record) for record in records),
        calibration=None if study.imported is not None else calibration,  # of this machine, not of theirs
        plan_digest=records[-1].plan_digest if records else None,
        traps=recorded_traps(study, records),
        behind=traps_behind(((alarm.rule, alarm.arm) for alarm in analysis.alarms), records),
    )


def readable(
    study: Study, records: Sequence[RunRecord], *, for_people: bool = True
) -> tuple[Study, tuple[RunRecord, ...]]:
    """Return study and records as a report shows them: conditions folded, and names of emulated arms marked.

    `for_people`: else names stay as they are, for files with a key of their own for the mark.
    """
    study, records = folded(study, records)
    return with_marks(study, records) if for_people else (study, tuple(records))


def _is_blind_to_stalls(record: RunRecord) -> bool:
    return record.measurement is not None and record.measurement.latency.blind_to_stalls is True


def _spent(records: Sequence[RunRecord]) -> Spent:
    times = [time for record in records for time in record.phases]
    measured_s = [
        record.share_of(time)
        for record in records
        if record.outcome.ok
        for time in record.phases
        if time.phase is Phase.MEASURE
    ]
    return Spent(
        attempts=len(records),
        runs_s=sum(record.machine_s for record in records),
        measure_s=sum(measured_s),
        began_at=min((time.began_at for time in times), default=None),
        ended_at=max((time.began_at + time.seconds for time in times), default=None),
    )
