"""Explanation of an arm's overhead: time added to an operation, by cause, with intervals over blocks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tare.analyze.derived import cpu_per_operation_us
from tare.analyze.estimate import Estimate
from tare.analyze.estimator import paired
from tare.analyze.explain.charged import charged
from tare.analyze.explain.components import DAEMONS, NO_SYMBOLS, NOT_NAMED, USER, components
from tare.analyze.explain.log_output import LOG_OUTPUT, TITLE, log_outputs
from tare.analyze.explain.parts import Part, part_of
from tare.analyze.explain.run_times import RunTimes
from tare.analyze.explain.sampled import OF_OPERATION, CpuSide
from tare.analyze.explain.waiting import Wait
from tare.analyze.runs import Runs, select_runs
from tare.record.run_record import RunRecord
from tare.study.model import Study

HELPERS = "helpers"
"""Cause of all time of docker-proxy and similar programs, in whatever function."""
SHIM = "shim"
"""Cause of all time of the shims of an arm's containers."""
_CAUSES = {CpuSide.HELPER: HELPERS, CpuSide.SHIM: SHIM, CpuSide.LOG: LOG_OUTPUT}
_CARRIER = "carrier of its port"
"""Title of the helpers where no sample tells which program they were."""


@dataclass(frozen=True)
class ArmExplanation:
    """Explanation of one arm against its baseline.

    `overhead`: that of the metric `cpu_per_operation`, of the server and what carries its bytes, so that an arm has
    one figure everywhere; `total`: CPU time of all causes, client and kernel included. `causes`: CPU time by cause,
    most added first; helpers are one cause. `cells`: CPU time by side and component, with keys `side:component`.
    `sides`: CPU time by side. `waits`: time in which a thread waited. `whole`: time of all CPUs for an operation;
    `rest`: its parts that belong to no operation: idle CPUs, the engine's daemons, other programs. `counts`: events
    for one operation. `log_output`: by the kernel's counters, CPU time of the engine's daemons and the SUT's shims,
    if the arm's log output is why it differs; where stacks were sampled, a cause too. `unnamed`: share of the
    kernel's CPU time without a rule. `unsampled`: share of the server's CPU time, by the kernel's counters, that is
    missing from the samples.
    """

    arm: str
    baseline: str
    total: Part | None
    overhead: Estimate
    causes: tuple[Part, ...]
    cells: tuple[Part, ...]
    sides: tuple[Part, ...]
    waits: tuple[Part, ...]
    whole: Part | None
    rest: tuple[Part, ...]
    counts: tuple[Part, ...]
    log_output: Part | None
    unnamed: float | None
    unsampled: float | None
    lacks: tuple[str, ...]

    @property
    def first(self) -> Part | None:
        """Cause or kind of waiting that is shown to have added most; `None` if none is.

        Ordered by the lower ends of intervals, so that an uncertain part does not precede a certain one; by points
        if there are too few blocks for intervals.
        """
        parts = [part for part in (*self.causes, *self.waits) if part.change.least_us > 0]
        return max(parts, key=lambda part: part.change.least_us, default=None)


@dataclass(frozen=True)
class Explanation:
    """`arms`: in the study's order, without baselines. `profiled`: number of runs with stacks, out of `runs`."""

    study: str
    table_version: str
    arms: tuple[ArmExplanation, ...]
    profiled: int
    runs: int

    def arm(self, name: str) -> ArmExplanation:
        """Explanation of an arm; raises `KeyError` if there is none."""
        for each in self.arms:
            if each.arm == name:
                return each
        raise KeyError(name)


Times = Callable[[RunRecord], RunTimes | None]
Values = Mapping[str, float]


def explain(study: Study, records: Sequence[RunRecord], times: Times) -> Explanation:
    """Compare each arm with its baseline over the blocks with good runs of both."""
    runs = select_runs(study, records)
    times_by_run = {place: times(record) for place, record in runs.good.items()}
    known = {place: each for place, each in times_by_run.items() if each is not None}
    logs, arms = {each.arm: each.part for each in log_outputs(study, records)}, []
    for arm in study.arms:
        baseline = study.baseline_of(arm.name)
        if arm.name == baseline:
            continue
        blocks = [block for block in runs.blocks if (block, arm.name) in known and (block, baseline) in known]
        mine = [known[block, arm.name] for block in blocks]
        theirs = [known[block, baseline] for block in blocks]
        overhead = paired(study, _ratios(runs, arm.name, baseline))
        arms.append(explain_arm(arm.name, baseline, Pairing(mine, theirs), overhead, logs.get(arm.name)))
    profiled = sum(each.cpu_us is not None for each in known.values())
    return Explanation(study.name, components().version, tuple(arms), profiled, len(runs.good))


def _ratios(runs: Runs, arm: str, baseline: str) -> Sequence[float]:
    """Ratios of the metric `cpu_per_operation`, block by block."""
    places = [(runs.good.get((block, arm)), runs.good.get((block, baseline))) for block in runs.blocks]
    used = [
        (cpu_per_operation_us(mine), cpu_per_operation_us(theirs)) for mine, theirs in places if mine and theirs
    ]
    return [mine / theirs for mine, theirs in used if mine and theirs]


@dataclass(frozen=True)
class Pairing:
    """Runs of an arm and of its baseline, block by block."""

    arm: Sequence[RunTimes]
    baseline: Sequence[RunTimes]

    def parts(self, of: Callable[[RunTimes], Values | None], title: Callable[[str], str]) -> tuple[Part, ...]:
        """Parts for every key of either side; a key that a run lacks is 0 there, as it had no such samples."""
        both = [
            (mine, theirs)
            for mine, theirs in zip(map(of, self.arm), map(of, self.baseline), strict=True)
            if mine is not None and theirs is not None
        ]
        keys = dict.fromkeys(key for pair in both for side in pair for key in side)
        return tuple(
            part_of(key, title(key), [(mine.get(key, 0.0), theirs.get(key, 0.0)) for mine, theirs in both])
            for key in keys
        )

    def known(self, of: Callable[[RunTimes], Values], title: Callable[[str], str]) -> tuple[Part, ...]:
        """Parts for keys of both sides, over the blocks that have them; a missing counter is not 0."""
        pairs = [(of(mine), of(theirs)) for mine, theirs in zip(self.arm, self.baseline, strict=True)]
        keys = dict.fromkeys(key for mine, _ in pairs for key in mine)
        changes = (
            (key, [(mine[key], theirs[key]) for mine, theirs in pairs if key in mine and key in theirs])
            for key in keys
        )
        return tuple(part_of(key, title(key), values) for key, values in changes if values)

    def one(self, name: str, title: str, of: Callable[[RunTimes], float | None]) -> Part | None:
        """Part for a single figure, over the blocks in which both sides have it."""
        values = [
            (mine, theirs)
            for mine, theirs in zip(map(of, self.arm), map(of, self.baseline), strict=True)
            if mine is not None and theirs is not None
        ]
        return part_of(name, title, values) if values else None


def explain_arm(
    arm: str, baseline: str, pairing: Pairing, overhead: Estimate, log_output: Part | None = None
) -> ArmExplanation:
    """Explain an arm from its runs and its baseline's. `overhead`: of the metric `cpu_per_operation`."""
    if log_output is not None:
        both = [charged(mine, theirs) for mine, theirs in zip(pairing.arm, pairing.baseline, strict=True)]
        pairing = Pairing([mine for mine, _ in both], [theirs for _, theirs in both])
    # Sampled and counted time are different figures.
    totals = [
        (mine.total_us, theirs.total_us)
        for mine, theirs in zip(pairing.arm, pairing.baseline, strict=True)
        if mine.total_us is not None and theirs.total_us is not None
        if (mine.cpu_us is None) == (theirs.cpu_us is None)
    ]
    causes = pairing.parts(_causes, partial(cause_title, helpers=carriers(pairing)))
    return ArmExplanation(
        arm=arm,
        baseline=baseline,
        total=part_of("total", "CPU time", totals) if totals else None,
        overhead=overhead,
        causes=tuple(sorted(causes, key=lambda part: -part.change.added_us)),
        cells=pairing.parts(_cells, _cell_title),
        sides=pairing.parts(_sides, str) or pairing.known(_counted, str),
        waits=pairing.known(_waits, str),
        whole=pairing.one("machine", "machine time", lambda run: run.machine_us),
        rest=tuple(
            part
            for part in (
                pairing.one("idle", "idle CPUs", lambda run: run.idle_us),
                pairing.one(DAEMONS, "the engine's daemons", lambda run: run.daemons_us),
                pairing.one("others", "other programs, and tare", lambda run: run.others_us),
            )
            if part is not None
        ),
        counts=tuple(part for part in pairing.known(lambda run: run.counts, str) if part.us or part.baseline_us),
        log_output=log_output,
        unnamed=_unnamed(pairing.arm),
        unsampled=_unsampled(pairing.arm),
        lacks=tuple(dict.fromkeys(why for run in (*pairing.arm, *pairing.baseline) for why in run.lacks)),
    )


def _of_operation(run: RunTimes) -> Iterator[tuple[CpuSide, str, float]]:
    for (side, component), used in (run.cpu_us or {}).items():
        if side in OF_OPERATION:
            yield side, component, used


def _sums(values: Iterator[tuple[str, float]]) -> Values:
    totals: dict[str, float] = {}
    for key, value in values:
        totals[key] = totals.get(key, 0.0) + value
    return totals


def _causes(run: RunTimes) -> Values | None:
    if run.cpu_us is None:
        return None
    return _sums((cause_of(side, component), used) for side, component, used in _of_operation(run))


def cause_of(side: CpuSide, component: str) -> str:
    """Cause of a cell: helpers and shims are one cause each; own code is one cause for each side."""
    if side in _CAUSES:
        return _CAUSES[side]
    return f"{USER}:{side}" if component == USER else component


def cause_title(cause: str, *, helpers: str = _CARRIER) -> str:
    """As reports write it. `helpers`: the programs that were seen."""
    if cause in (HELPERS, SHIM, LOG_OUTPUT):
        return {HELPERS: helpers, SHIM: "its shim", LOG_OUTPUT: TITLE}[cause]
    if cause.startswith(f"{USER}:"):
        return f"the {cause.partition(':')[2]}'s own code"
    return components().title(cause)


def carriers(pairing: Pairing) -> str:
    """Programs that carried the bytes of the arm, and of its baseline if those were others; the busiest first."""
    mine, theirs = _programs(pairing.arm), _programs(pairing.baseline)
    if mine and theirs and mine != theirs:
        return f"{mine}, in place of {theirs}"
    return mine or theirs or _CARRIER


def _programs(runs: Sequence[RunTimes]) -> str:
    used = _sums(item for run in runs for item in run.carriers_us.items())
    return " and ".join(sorted(used, key=lambda program: (-used[program], program)))


def _cells(run: RunTimes) -> Values | None:
    if run.cpu_us is None:
        return None
    return _sums((f"{side}:{component}", used) for side, component, used in _of_operation(run))


def _cell_title(cell: str) -> str:
    side, _, component = cell.partition(":")
    return f"{side}: {components().title(component)}"


def _sides(run: RunTimes) -> Values | None:
    if run.cpu_us is None:
        return None
    return _sums((str(side), used) for side, _, used in _of_operation(run))


def _counted(run: RunTimes) -> Values:
    return {str(side): used for side, used in run.counted_us.items()}


def _waits(run: RunTimes) -> Values:
    """Waiting time of both sides, as either may delay an operation."""
    return _sums((wait_title(kind), used) for (_, kind), used in run.waited_us.items())


def wait_title(kind: Wait) -> str:
    """As reports write it."""
    return f"waiting: {kind}"


def _unnamed(runs: Sequence[RunTimes]) -> float | None:
    """Share of the kernel's CPU time without a component, over all runs."""
    kernel = [(name, used) for run in runs for _, name, used in _of_operation(run) if name != USER]
    whole = sum(used for _, used in kernel)
    return sum(used for name, used in kernel if name in (NOT_NAMED, NO_SYMBOLS)) / whole if whole else None


def _unsampled(runs: Sequence[RunTimes]) -> float | None:
    """Share of the server's counted CPU time that the samples lack; negative if the samples have more."""
    known = [
        (
            run.counted_us[CpuSide.SERVER],
            sum(used for side, _, used in _of_operation(run) if side is CpuSide.SERVER),
        )
        for run in runs
        if run.cpu_us is not None and run.counted_us.get(CpuSide.SERVER)
    ]
    whole = sum(each for each, _ in known)
    return (whole - sum(each for _, each in known)) / whole if whole else None
