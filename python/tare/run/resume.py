"""What remains of a plan, and whether its protocol has enough data, both computed from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tare.plan.model import Plan, PlannedRun
from tare.protocols.pilot import BLOCKS, PilotRun, choose, is_piloted, most_s
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.record.emulated import EmulatedArms, union_of_sides
from tare.record.observation import Side
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import RunRecord
from tare.record.swap_halves import throughput_of
from tare.study.model import Study
from tare.study.rules.repetition import instances


@dataclass(frozen=True)
class StudyState:
    """What has been made so far, by run: good attempts, number of attempts and machine seconds of all attempts.

    `throughput_per_s`: of good attempts; runs without a throughput are missing. `pilot`: good runs of the first
    blocks, which the choice of the measure phase is based on; `choice`: the pilot's choice that later runs were
    made with, as their records say. `emulated`: arms with an emulated run.
    """

    good: AbstractSet[str] = frozenset()
    attempts: Counter[str] = field(default_factory=Counter)
    throughput_per_s: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    pilot: Mapping[str, PilotRun] = field(default_factory=dict)
    choice: Choice | TurnChoice | None = None
    emulated: EmulatedArms = field(default_factory=dict)

    @classmethod
    def from_records(cls, records: Iterable[RunRecord]) -> StudyState:
        """Make the state from the records of a store."""
        return cls().plus(*records)

    def plus(self, *records: RunRecord) -> StudyState:
        """Return the state with these attempts added."""
        builder = StateBuilder(self)
        builder.add(*records)
        return builder.state

    def plus_summaries(self, attempts: Iterable[AttemptSummary]) -> StudyState:
        """Return the state with these summaries of attempts added."""
        builder = StateBuilder(self)
        builder.note(attempts)
        return builder.state


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """Summary of an attempt: what decides how the study continues.

    `pilot`: of a good run of the first blocks; `choice`: the choice that set the length of its measure phase.
    """

    run_id: str
    arm: str
    block: int
    ok: bool
    seconds: float
    throughput_per_s: float | None = None
    pilot: PilotRun | None = None
    choice: Choice | TurnChoice | None = None
    emulated: tuple[Side, ...] = ()


def summary_of(record: RunRecord) -> AttemptSummary:
    """Summarise a record."""
    ok, took_s = record.outcome.ok, record.machine_s
    return AttemptSummary(
        record.run_id,
        record.arm,
        record.block,
        ok,
        took_s,
        throughput_of(record) if ok else None,
        _pilot_run(record, took_s) if ok and record.block <= BLOCKS else None,
        record.pilot,
        record.emulated,
    )


class StateBuilder:
    """Builds a `StudyState` from records as they come in; the cost per record does not grow with their number."""

    def __init__(self, state: StudyState) -> None:
        self._good, self._attempts = set(state.good), state.attempts.copy()
        self._rates, self._seconds = dict(state.throughput_per_s), dict(state.seconds)
        self._pilot, self._choice = dict(state.pilot), state.choice
        self._emulated = dict(state.emulated)

    @property
    def state(self) -> StudyState:
        """The state so far. Records added later appear in it, too."""
        return StudyState(
            self._good, self._attempts, self._rates, self._seconds, self._pilot, self._choice, self._emulated
        )

    def add(self, *records: RunRecord) -> None:
        """Add these records."""
        for one in records:
            alone = one.duet is None and one.rotation is None
            if one.outcome.ok and one.block > BLOCKS and alone and one.pilot is None and not one.emulated:
                self.note_good(one.run_id, sum([time.seconds for time in one.phases]), throughput_of(one))
            else:
                self.note((summary_of(one),))

    def note_good(self, run: str, seconds: float, throughput_per_s: float | None) -> None:
        """Add a good attempt without further facts, as nearly all of 100,000 are."""
        self._attempts[run] = self._attempts.get(run, 0) + 1
        self._seconds[run] = self._seconds.get(run, 0.0) + seconds
        self._good.add(run)
        if throughput_per_s is not None:
            self._rates[run] = throughput_per_s

    def note(self, attempts: Iterable[AttemptSummary]) -> None:
        """Add these summaries of attempts."""
        for made in attempts:
            run = made.run_id
            self._attempts[run] = self._attempts.get(run, 0) + 1  # a `Counter`'s `+=` looks up twice
            self._seconds[run] = self._seconds.get(run, 0.0) + made.seconds
            if made.ok:
                self._good.add(run)
                if made.throughput_per_s is not None:
                    self._rates[run] = made.throughput_per_s
                if made.pilot is not None:
                    self._pilot[run] = made.pilot
            if self._choice is None and made.choice is not None:
                self._choice = made.choice
            if made.emulated:
                self._emulated[made.arm] = union_of_sides(self._emulated.get(made.arm, ()), made.emulated)


def _pilot_run(record: RunRecord, took_s: float) -> PilotRun:
    windows = () if record.measurement is None else record.measurement.windows
    return PilotRun(
        block=record.block,
        arm=record.arm,
        windows=tuple(rate for window in windows if (rate := window.throughput_per_s) is not None),
        restart_s=max(0.0, took_s - float((record.settings.get("workload") or {}).get("measure_s", 0.0))),
    )


def finished(plan: Plan, done: StudyState) -> tuple[Finished, ...]:
    """Return the leading blocks whose runs have all been attempted; the block in progress does not count."""
    return _blocks_of(plan, done).blocks


@dataclass(frozen=True)
class _Blocks:
    """`blocks`: finished blocks. `not_due`: runs, in these or later blocks, of arms that had ended before."""

    blocks: tuple[Finished, ...]
    not_due: AbstractSet[str]


def _blocks_of(plan: Plan, done: StudyState) -> _Blocks:
    runs: dict[int, list[PlannedRun]] = {}
    for run in plan.runs:
        runs.setdefault(run.block, []).append(run)
    blocks: list[Finished] = []
    not_due: set[str] = set()
    ended, under_way = ended_arms(plan.study, blocks), False
    for block, in_block in sorted(runs.items()):
        if ended:
            not_due |= {run.id for run in in_block if run.arm in ended}
        over = None if under_way else finished_block(plan, done, block, in_block, not_due)
        if over is None:
            under_way = True
            continue
        blocks.append(over)
        ended = ended_arms(plan.study, blocks)
    return _Blocks(tuple(blocks), not_due)


def ended_arms(study: Study, blocks: Sequence[Finished]) -> AbstractSet[str]:
    """Return the arms that later blocks omit: their interval lies within the margin, or outside of it.

    Baselines and the control never end, as they belong to every block. All stages of an instance end together.
    Where the runs of a block share time, all arms continue until the last one ends.
    """
    rule = Rule.of(study.protocol)
    if rule.margin is None or PROTOCOLS[study.protocol.name].as_one or len(blocks) < rule.min_blocks:
        return frozenset()
    known = {name for name, arm in decide(rule, study.baseline, blocks).arms.items() if arm.known}
    known -= {arm.name for arm in study.arms if arm.control}
    together = [{arm.name for arm in arms} for arms in instances(study)]
    return frozenset(name for arms in together if arms <= known for name in arms)


def finished_block(
    plan: Plan, done: StudyState, block: int, runs: Sequence[PlannedRun], not_due: AbstractSet[str] = frozenset()
) -> Finished | None:
    """Return the finished block of these runs; `None` while a run that is due has no attempt."""
    open_yet = [run.id for run in runs if run.id not in done.good]
    if any(run not in not_due and not done.attempts[run] for run in open_yet):
        return None
    study = plan.study
    made = {run.arm: done.throughput_per_s.get(run.id) for run in runs}
    rates = {arm.name: made.get(arm.name) for arm in study.arms}
    seconds = sum([done.seconds.get(run.id, 0.0) for run in runs])
    baselines = {arm.name: study.baseline_of(arm.name) for arm in study.arms} if study.baseline_levels else {}
    return Finished(block, rates, seconds, baselines, frozenset([arm.name for arm in study.arms if arm.control]))


def decision(plan: Plan, done: StudyState) -> Decision:
    """Return the protocol's decision after the finished blocks; it depends on the records only."""
    protocol = plan.study.protocol
    return PROTOCOLS[protocol.name].stop(plan.study.baseline, finished(plan, done), protocol)


def remaining(plan: Plan, done: StudyState) -> tuple[PlannedRun, ...]:
    """Return the runs without a good attempt, in the order of the plan, except those that need not start any more.

    These are runs of blocks after the last one that the protocol wants, and of arms that have ended. A failed run
    of a finished block stays: once it is good, the protocol may decide otherwise.
    """
    if all(run.id in done.good for run in plan.runs):
        return ()  # whatever the protocol says
    made, protocol = _blocks_of(plan, done), plan.study.protocol
    decided = PROTOCOLS[protocol.name].stop(plan.study.baseline, made.blocks, protocol)
    last = None if decided.end is None else decided.blocks
    without = {*done.good, *made.not_due}
    return tuple(run for run in plan.runs if run.id not in without and (last is None or run.block <= last))


def choice_of(plan: Plan, done: StudyState) -> Choice | None:
    """Return the chosen measure phase; `None` if the study does not choose one, or while the pilot runs.

    The first record made with a choice decides for all later runs: a pilot run that is made good afterwards changes
    nothing. Without such a record, the pilot's records decide, with the same result for every caller.
    """
    protocol = plan.study.protocol
    if not is_piloted(protocol) or len(finished(plan, done)) < BLOCKS:
        return None
    if isinstance(done.choice, Choice):
        return done.choice
    workload = plan.arm(plan.study.baseline).settings.workload
    pairs = {arm.name: plan.study.baseline_of(arm.name) for arm in plan.study.arms}
    baselines = {arm: baseline for arm, baseline in pairs.items() if arm != baseline}
    pilot_s, window_s = float(workload["measure_s"]), float(workload["window_s"])
    runs = [done.pilot[run.id] for run in plan.runs if run.id in done.pilot]
    return choose(runs, baselines, pilot_s=pilot_s, window_s=window_s, most=most_s(protocol, pilot_s))


def plan_of(plan: Plan, run: PlannedRun, choice: Choice | TurnChoice | None) -> Plan:
    """Return the plan that a run is made with: unchanged in the pilot, later with the chosen measure phase."""
    if not isinstance(choice, Choice) or run.block <= BLOCKS:
        return plan
    arms = []
    for arm in plan.study.arms:
        workload = {**arm.settings.workload, "measure_s": choice.measure_s}
        arms.append(arm.model_copy(update={"settings": arm.settings.model_copy(update={"workload": workload})}))
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": tuple(arms)})})
