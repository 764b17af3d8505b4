"""Estimates of a plan's duration and disk space, shown as estimates.

Only what is known without touching a machine is included: phases from the workload's parameters, repetitions from
the plan, and the constants below. Building images is not included, since most are cached already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tare.databases import Database
from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS, rule_of, runs_of_blocks
from tare.protocols.rotate import turns_a_round
from tare.protocols.stopping import Decision, Rule, blocks_needed
from tare.study.model import Arm, ArmSettings, Study
from tare.study.protocol_spec import RotateSpec
from tare.study.rules.repetition import instances
from tare.workloads import Workload

_PROCESSES = 2
"""Processes of a client in a run: warm-up and measurement."""


RUN_OVERHEAD_S = 5.0
"""Seconds of a run beyond its phases and its copy: start and clean stop of the server and of two client processes,
and collecting files. Measured with MariaDB and sysbench on two busy CPUs: 4 to 6 s. Slower programs declare the
rest themselves (`slow_start_s`)."""
EMPTY_SERVER_BYTES = 250e6
"""A data directory with few rows: redo log, system and undo tablespace, first extents of the tables. Measured: 271
MB with MariaDB 10.11 and 8 tables of 10,000 rows."""
BYTES_PER_ROW = 240.0
"""Assumed: a row of some 200 bytes in partly filled pages, with one secondary index."""
SERVER_SETUP_S = 10.0
"""Assumed: initialising an empty data directory and stopping the server cleanly, once per snapshot."""
LOAD_ROWS_PER_S = 100_000.0
"""Assumed: rows loaded a second, secondary index included."""
COPY_BYTES_PER_S = 500e6
"""Assumed: copying a snapshot for each run, on a file system without reflinks."""
WRITE_BYTES_PER_S = 100e6
"""Assumed: writing and syncing the files of a workload without a database, and reading them for their digest."""
EXPECTED_SPREAD = 0.0175
"""Standard deviation of the log throughput ratio of two arms over blocks, while nothing is known of the machine.
Measured: 24 blocks of two identical, pinned servers, both restarted in each block (± 0.74 % at 95 %)."""
SlowStarts = Callable[[ArmSettings], float]


def slow_starts(
    databases: Mapping[str, Database], workloads: Mapping[str, Workload[Any]]
) -> Callable[[ArmSettings], float]:
    """Return a function from an arm's settings to the extra seconds of its starts; nodes start in turn."""

    def of(settings: ArmSettings) -> float:
        server = databases[settings.sut.database].slow_start_s if settings.sut.database else 0.0
        client = workloads[settings.workload_name].slow_start_s
        return settings.sut.nodes * server + _PROCESSES * client

    return of


def no_slow_start(_: ArmSettings) -> float:
    """Return 0: nothing is slow to start, or nothing is known of an arm's programs."""
    return 0.0


@dataclass(frozen=True)
class BlockCount:
    """Blocks that a protocol makes: at least, expected for the assumed spread, and at most by its caps."""

    fewest: int
    expected: int
    most: int


@dataclass(frozen=True)
class DataSet:
    """What one arm loads. `key`: equal for arms that start from the same snapshot. `rows`: `None` if unknown.

    `file_bytes`: size of the files of a workload without a database, 0 for none; `None` for a database's data.
    `nodes`: data directories that the rows are spread over; `replicas`: how many of them hold each row.
    """

    key: str
    rows: int | None
    file_bytes: int | None = None
    nodes: int = 1
    replicas: int = 1

    @property
    def size_bytes(self) -> float | None:
        """Bytes of loaded data, of all nodes together."""
        if self.file_bytes is not None:
            return float(self.file_bytes)
        if self.rows is None:
            return None
        return self.nodes * EMPTY_SERVER_BYTES + self.replicas * self.rows * BYTES_PER_ROW

    @property
    def load_s(self) -> float | None:
        """Seconds to initialise and load the data set."""
        if self.file_bytes is not None:
            return self.file_bytes / WRITE_BYTES_PER_S
        return None if self.rows is None else self.nodes * SERVER_SETUP_S + self.rows / LOAD_ROWS_PER_S


@dataclass(frozen=True)
class PlanEstimate:
    """Seconds and bytes that a plan will need; `None` if the size of a data set is unknown beforehand.

    `load_s`: loading each data set once. `block_copy_s`: a copy for every run of one block (the mean over blocks of
    different arms). `block_run_s`: the phases of these runs with starts and stops. `disk_bytes`: every snapshot and
    the largest working copy. `at_most`: some runs end after a number of operations, and `measure_s` only bounds
    them. `spread`: assumed scatter between blocks, which determines the expected number of blocks; from the
    machine's calibration if `calibrated`.
    """

    data_sets: int
    blocks: BlockCount
    load_s: float | None
    block_copy_s: float | None
    block_run_s: float
    disk_bytes: float | None
    at_most: bool = False
    spread: float = EXPECTED_SPREAD
    calibrated: bool = False

    @property
    def total_s(self) -> float | None:
        """Seconds from the first load to the last teardown, with the expected number of blocks."""
        return self.seconds_of(self.blocks.expected)

    @property
    def most_s(self) -> float | None:
        """Seconds from the first load to the last teardown if a cap has to end the plan."""
        return self.seconds_of(self.blocks.most)

    def seconds_of(self, blocks: int) -> float | None:
        """Return the seconds of the plan with this number of blocks."""
        block_s = _sum((self.block_copy_s, self.block_run_s))
        return None if block_s is None else _sum((self.load_s, blocks * block_s))


def estimate(
    plan: Plan,
    data_set: Callable[[ArmSettings], DataSet],
    slow: SlowStarts = no_slow_start,
    spread: float | None = None,
) -> PlanEstimate:
    """Estimate a plan. `data_set`: what an arm loads; `slow`: see `run_seconds`; `spread`: from a calibration."""
    study = plan.study
    first_stages = {arms[0].name for arms in instances(study)}
    loaded = {arm.name: data_set(arm.settings) for arm in study.arms if arm.name in first_stages}
    snapshots = {each.key: each for each in loaded.values() if each.size_bytes != 0}
    sizes = [snapshot.size_bytes for snapshot in snapshots.values()]
    blocks = _kinds_of_block(study)
    copied = _sum(loaded[arm.name].size_bytes for block in blocks for arm in block if arm.name in first_stages)
    copy_s = None if copied is None else copied / COPY_BYTES_PER_S / len(blocks)
    run_s = sum(_block_seconds(study, block, slow) for block in blocks) / len(blocks)
    copies = 2 if _at_once(study) else len(study.arms) if isinstance(study.protocol, RotateSpec) else 1
    largest = max((size for size in sizes if size is not None), default=None)
    return PlanEstimate(
        data_sets=len(snapshots),
        blocks=block_count(rule_of(study), run_s + (copy_s or 0.0), EXPECTED_SPREAD if spread is None else spread),
        load_s=_sum(snapshot.load_s for snapshot in snapshots.values()),
        block_copy_s=copy_s,
        block_run_s=run_s,
        disk_bytes=_sum((*sizes, *[largest] * copies)),
        at_most=any(arm.settings.workload.get("operations") for arm in study.arms),
        spread=EXPECTED_SPREAD if spread is None else spread,
        calibrated=spread is not None,
    )


def _at_once(study: Study) -> bool:
    return PROTOCOLS[study.protocol.name].at_once


def _kinds_of_block(study: Study) -> list[tuple[Arm, ...]]:
    """Return the arms of each kind of block; in a duet, the baseline with each other arm in turn."""
    if not _at_once(study):
        return [study.arms]
    baseline = next(arm for arm in study.arms if arm.name == study.baseline)
    return [(baseline, arm) for arm in study.arms if arm is not baseline]


def _block_seconds(study: Study, block: tuple[Arm, ...], slow: SlowStarts) -> float:
    """Seconds of a block. Two runs at once are prepared in turn and then take as long as the longer one."""
    each = [run_seconds(arm.settings, slow) for arm in block]
    if _at_once(study):
        return max(each) + RUN_OVERHEAD_S
    return _generation_seconds(study, study.protocol, slow) if isinstance(study.protocol, RotateSpec) else sum(each)


def _generation_seconds(study: Study, spec: RotateSpec, slow: SlowStarts) -> float:
    """Seconds of a generation: its servers start one after the other, then their turns fill all rounds."""
    block, turns = study.arms, turns_a_round({arm.name: study.baseline_of(arm.name) for arm in study.arms})
    workload = block[0].settings.workload
    rounds = spec.rounds_of(float(workload["measure_s"])) + spec.warm_up_rounds_of(float(workload["warmup_s"]))
    starts_s = sum(RUN_OVERHEAD_S + slow(arm.settings) for arm in block)
    turn_s = (spec.measured_ms + spec.settling_ms) / 1000
    return (
        starts_s
        + rounds * sum(turns.values()) * turn_s
        + max(float(arm.settings.workload["cooldown_s"]) for arm in block)
    )


def block_count(rule: Rule, block_s: float, spread: float = EXPECTED_SPREAD) -> BlockCount:
    """Return how many blocks of `block_s` seconds the rule will ask for; at least one, however long it takes."""
    each = rule.blocks_each
    most = rule.blocks if rule.seconds is None else max(1, min(rule.blocks, int(rule.seconds // (each * block_s))))
    expected = blocks_needed(rule, 0.0, spread)
    return BlockCount(
        fewest=each * (most if rule.target is None else min(most, rule.min_blocks)),
        expected=each * (most if expected is None else min(most, expected)),
        most=each * most,
    )


def blocks_expected(study: Study, decided: Decision, run_s: float) -> int:
    """Return the expected total of blocks of a study in progress, from its spread, else from the plan's estimate.

    `run_s`: seconds of a run, which convert a cap on machine time into blocks.
    """
    if decided.end is not None:
        return decided.blocks
    rule = rule_of(study)
    planned = block_count(rule, max(run_s * runs_of_blocks(study, 1), 1e-3))
    if decided.more_blocks is None:
        return max(planned.expected, decided.blocks + 1)
    return min(planned.most, decided.blocks + max(1, rule.blocks_each * decided.more_blocks))


def run_seconds(settings: ArmSettings, slow: SlowStarts) -> float:
    """Return the seconds of one run: its workload's phases, with starting and stopping its nodes in turn.

    `slow`: seconds that an arm's programs take to start beyond `RUN_OVERHEAD_S`.
    """
    phases = sum(float(settings.workload[phase]) for phase in ("warmup_s", "measure_s", "cooldown_s"))
    return phases + settings.sut.nodes * RUN_OVERHEAD_S + slow(settings)


def _sum(parts: Iterable[float | None]) -> float | None:
    """Return the sum; `None` if any part is unknown."""
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total
