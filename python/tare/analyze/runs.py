"""Which runs count: one good attempt of each, and an account of those that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tare.errors import StoreError
from tare.protocols.registry import PROTOCOLS
from tare.run.record import RunRecord
from tare.study.model import Study

if TYPE_CHECKING:
    from tare.analyze.metrics import Metric


@dataclass(frozen=True)
class Failure:
    """An attempt that must not be used. `made_good`: another attempt of the same run is used instead."""

    run_id: str
    attempt: int
    block: int
    arm: str
    phase: str | None
    reason: str
    made_good: bool


@dataclass(frozen=True)
class Runs:
    """The runs of a study. `good`: (block, arm) → the attempt that counts.

    `at_once`: a block has two arms only, driven at the same time; what others it lacks is not missing.
    """

    good: Mapping[tuple[int, str], RunRecord]
    failures: tuple[Failure, ...]
    attempted: frozenset[tuple[int, str]]
    at_once: bool = False
    _read: dict[str, dict[tuple[int, str], float | None]] = field(default_factory=dict, repr=False, compare=False)

    def value(self, block: int, arm: str, metric: Metric) -> float | None:
        """The value of a good run, `None` where it is not known."""
        return self._values(metric)[block, arm]

    def values_of(self, arm: str, metric: Metric) -> list[float]:
        """All known values of an arm's good runs, in the order of the runs."""
        found = self._values(metric).items()
        return [value for (_, name), value in found if name == arm and value is not None]

    def _values(self, metric: Metric) -> dict[tuple[int, str], float | None]:
        """Read once a metric: percentiles are counted from histograms, and a baseline stands beside every arm."""
        if metric.name not in self._read:
            self._read[metric.name] = {place: metric.of(run) for place, run in self.good.items()}
        return self._read[metric.name]

    def blocks_of(self, arm: str) -> tuple[int, ...]:
        """Blocks in which the arm was to be run."""
        return tuple(block for block in self.blocks if not self.at_once or (block, arm) in self.attempted)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of which anything was run, in order."""
        return tuple(sorted({block for block, _ in self.attempted}))

    def missing(self, block: int, arm: str) -> str:
        """Why there is no good run of `arm` in `block`."""
        failed = sum(failure.block == block and failure.arm == arm for failure in self.failures)
        if failed == 0:
            return f"{arm} was not run"
        return f"{arm} failed" if failed == 1 else f"{arm} failed {failed} times"


def select_runs(study: Study, records: Iterable[RunRecord]) -> Runs:
    """The first good attempt of each run. Raises `StoreError` for records that are not this study's."""
    ordered = sorted(records, key=lambda record: (record.index, record.attempt))
    arms = {arm.name for arm in study.arms}
    good: dict[tuple[int, str], RunRecord] = {}
    for record in ordered:
        if record.arm not in arms:
            raise StoreError(
                f"run {record.run_id} is of arm {record.arm!r}, which study {study.name} does not have"
            )
        place = (record.block, record.arm)
        if record.outcome.ok and good.setdefault(place, record).run_id != record.run_id:
            raise StoreError(
                f"block {record.block} holds two runs of arm {record.arm!r}: {record.run_id} is the second"
            )
    failures = tuple(_failure(record, good) for record in ordered if not record.outcome.ok)
    attempted = frozenset((record.block, record.arm) for record in ordered)
    return Runs(good, failures, attempted, PROTOCOLS[study.protocol.name].at_once)


def _failure(record: RunRecord, good: Mapping[tuple[int, str], RunRecord]) -> Failure:
    phase = record.outcome.failed_in
    return Failure(
        run_id=record.run_id,
        attempt=record.attempt,
        block=record.block,
        arm=record.arm,
        phase=None if phase is None else phase.value,
        reason=record.outcome.reason or "no reason was recorded",
        made_good=(record.block, record.arm) in good,
    )
