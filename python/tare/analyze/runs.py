"""Selection of the runs that count: one good attempt of each. Conditions and strata split them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare.analyze.columns import Column, Columns, Rows, known_values
from tare.errors import StoreError
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import Rule
from tare.record.run_record import RunRecord
from tare.study.model import Arm, Study

if TYPE_CHECKING:
    from tare.analyze.metrics import Metric


@dataclass(frozen=True)
class Failure:
    """A failed attempt, which is not used. `made_good`: another attempt of the same run is used instead."""

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

    `at_once`: each block has only two arms, driven at the same time, so the other arms are not missing from it.
    `ends_early`: an arm's blocks may end before those of other arms.
    """

    good: Mapping[tuple[int, str], RunRecord]
    failures: tuple[Failure, ...]
    attempted: frozenset[tuple[int, str]]
    at_once: bool = False
    ends_early: bool = False
    _read: dict[str, Column] = field(default_factory=dict, repr=False, compare=False)
    _with_none: dict[str, Column] = field(default_factory=dict, repr=False, compare=False)
    _rows_in: dict[tuple[str, tuple[int, ...]], Rows] = field(default_factory=dict, repr=False, compare=False)
    _by_site: dict[tuple[int, ...], dict[str, list[int]]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def columns(self) -> Columns:
        """Columns of the good runs, in the order of `good`."""
        return Columns(tuple(self.good.values()))

    def column(self, metric: Metric) -> Column:
        """Values of the good runs; cached, as percentiles are counted from histograms."""
        if metric.name not in self._read:
            self._read[metric.name] = metric.column(self.columns)
        return self._read[metric.name]

    def values_at(self, metric: Metric, rows: Rows) -> Column:
        """Values in these rows; NaN for row -1."""
        if metric.name not in self._with_none:
            self._with_none[metric.name] = np.append(self.column(metric), np.nan)
        return self._with_none[metric.name][rows]

    def resolutions(self, metric: Metric) -> Column:
        """Relative width of the histogram bucket of a metric, for each good run."""
        return self.columns.number("measurement", *metric.resolution)

    def value(self, block: int, arm: str, metric: Metric) -> float | None:
        """Value of a good run; `None` if unknown."""
        value = float(self.column(metric)[self.places(arm)[block]])
        return None if math.isnan(value) else value

    def values_of(self, arm: str, metric: Metric) -> list[float]:
        """Known values of an arm's good runs, in the order of the runs."""
        return known_values(self.column(metric)[list(self.places(arm).values())]) if self.places(arm) else []

    def of_arm(self, arm: str) -> list[RunRecord]:
        """Good runs of an arm, in the order of the runs."""
        return [self.columns.records[row] for row in self.places(arm).values()]

    @cached_property
    def attempted_of(self) -> Counter[str]:
        """Arm → number of attempted runs."""
        return Counter(arm for _, arm in self.attempted)

    def good_of(self, arm: str) -> tuple[RunRecord, ...]:
        """Good runs of an arm, in the order of the blocks."""
        return self._good_of.get(arm, ())

    @cached_property
    def _good_of(self) -> Mapping[str, tuple[RunRecord, ...]]:
        return {arm: tuple(self.columns.records[row] for row in rows) for arm, rows in self._rows.items()}

    def places(self, arm: str) -> Mapping[int, int]:
        """Block → row of an arm's good run in the columns, in the order of the runs."""
        return self._places.get(arm, {})

    def rows(self, arm: str) -> Rows:
        """Rows of an arm's good runs in the columns, in the order of the blocks."""
        return self._rows.get(arm, np.array([], dtype=np.intp))

    def rows_in_blocks(self, arm: str, blocks: tuple[int, ...]) -> Rows:
        """Like `rows_in`, but cached, as every metric needs the same rows."""
        if (arm, blocks) not in self._rows_in:
            self._rows_in[arm, blocks] = self.rows_in(arm, blocks)
        return self._rows_in[arm, blocks]

    def rows_in(self, arm: str, blocks: Sequence[int] | NDArray[np.int64]) -> Rows:
        """Row of an arm's good run in each of these blocks; -1 if there is none."""
        wanted, own = np.asarray(blocks, dtype=np.int64), self.row_blocks[self.rows(arm)]
        if not len(own):
            return np.full(len(wanted), -1, dtype=np.intp)
        near = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        return np.where(own[near] == wanted, self.rows(arm)[near], -1)

    @cached_property
    def row_blocks(self) -> NDArray[np.int64]:
        """Block of each row of the columns."""
        return np.array([block for block, _ in self.good], dtype=np.int64)

    @cached_property
    def _rows(self) -> Mapping[str, Rows]:
        ordered = {arm: sorted(places.items()) for arm, places in self._places.items()}
        return {arm: np.array([row for _, row in each], dtype=np.intp) for arm, each in ordered.items()}

    @cached_property
    def _places(self) -> Mapping[str, dict[int, int]]:
        places: dict[str, dict[int, int]] = {}
        for row, (block, arm) in enumerate(self.good):
            places.setdefault(arm, {})[block] = row
        return places

    def blocks_of(self, arm: str) -> tuple[int, ...]:
        """Blocks in which the arm should have run."""
        if not self.at_once and not self.ends_early:
            return self.blocks
        return tuple(block for block in self.blocks if (block, arm) in self.attempted)

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Blocks with any run, in order."""
        return tuple(sorted({block for block, _ in self.attempted}))

    def by_site(self, ratios: Iterable[tuple[int, float]]) -> dict[str, list[float]]:
        """Values by the site of their block; all under the name "" if no site is recorded."""
        blocks, values = zip(*ratios, strict=True) if (ratios := tuple(ratios)) else ((), ())
        if blocks not in self._by_site:  # most metrics of most arms have the same blocks
            at: dict[str, list[int]] = {}
            for n, block in enumerate(blocks):
                at.setdefault(self._sites.get(block) or "", []).append(n)
            self._by_site[blocks] = at
        return {site: [values[n] for n in those] for site, those in self._by_site[blocks].items()}

    @cached_property
    def swapped(self) -> Mapping[int, bool]:
        """Block → whether server and client were swapped; empty if they never were."""
        swapped = {block: run.is_swapped for (block, _), run in self.good.items() if run.between is not None}
        return swapped if any(swapped.values()) else {}

    def by_server_host(self, ratios: Iterable[tuple[int, float]]) -> dict[str, list[float]]:
        """Values by the server's host in their block, if two hosts are recorded."""
        hosts = self._server_hosts
        values: dict[str, list[float]] = {}
        for block, value in ratios:
            if block in hosts:
                values.setdefault(hosts[block], []).append(value)
        return values

    @cached_property
    def _server_hosts(self) -> Mapping[int, str]:
        """Block → host of the server, if two hosts are recorded."""
        return {block: run.between.sut for (block, _), run in self.good.items() if run.between is not None}

    @cached_property
    def _sites(self) -> Mapping[int, str | None]:
        """Block → name of its site."""
        return {block: run.site for (block, _), run in self.good.items()}

    @cached_property
    def _failed(self) -> Counter[tuple[int, str]]:
        return Counter((failure.block, failure.arm) for failure in self.failures)

    def missing(self, block: int, arm: str) -> str:
        """Why there is no good run of `arm` in `block`."""
        failed = self._failed[block, arm]
        if failed == 0:
            return f"{arm} was not run"
        return f"{arm} failed" if failed == 1 else f"{arm} failed {failed} times"


def select_runs(study: Study, records: Iterable[RunRecord]) -> Runs:
    """Select the first good attempt of each run. Raises `StoreError` for records that are not of this study."""
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
    ends_early = Rule.of(study.protocol).margin is not None
    return Runs(good, failures, attempted, PROTOCOLS[study.protocol.name].at_once, ends_early)


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


def by_strata(study: Study, records: Sequence[RunRecord]) -> tuple[tuple[Mapping[str, str], list[RunRecord]], ...]:
    """Split records by strata: (levels, records) in the study's order of levels; empty without strata."""
    strata: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records if study.strata else ():
        strata.setdefault(tuple(record.levels[factor] for factor in study.strata), []).append(record)
    rank = {factor: {level: n for n, level in enumerate(study.factors[factor])} for factor in study.strata}

    def place(levels: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(rank[factor][level] for factor, level in zip(study.strata, levels, strict=True))

    return tuple(
        (dict(zip(study.strata, levels, strict=True)), strata[levels]) for levels in sorted(strata, key=place)
    )


def folded(study: Study, records: Sequence[RunRecord]) -> tuple[Study, tuple[RunRecord, ...]]:
    """Remove conditions from the study's arms, and renumber arms and blocks of its records accordingly.

    Both stay as they are without conditions, and for imported results, which have none among their arms.
    """
    if not study.conditions or study.imported is not None:
        return study, tuple(records)
    names = {arm.name: _name(study, arm) for arm in study.arms}
    arms: dict[str, Arm] = {}
    for arm in study.arms:
        arms.setdefault(names[arm.name], _without(study, arm, names[arm.name]))
    places = {place: n for n, place in enumerate(sorted({_place(study, record) for record in records}), start=1)}
    kept = tuple(
        record.model_copy(update={"arm": names[record.arm], "block": places[_place(study, record)]})
        for record in records
        if record.arm in names
    )
    return study.model_copy(
        update={
            "arms": tuple(arms.values()),
            "baseline": names[study.baseline],
            "baseline_levels": study.baseline_levels if study.stages else {},
        }
    ), kept


def _without(study: Study, arm: Arm, name: str) -> Arm:
    """Arm without conditions in name and levels; its settings are those under the first condition."""
    return arm.model_copy(update={"name": name, "levels": _levels(study, arm)})


def _name(study: Study, arm: Arm) -> str:
    return arm.name if arm.control else "-".join(_levels(study, arm).values())


def _levels(study: Study, arm: Arm) -> Mapping[str, str]:
    return {factor: level for factor, level in arm.levels.items() if factor not in study.conditions}


def _place(study: Study, record: RunRecord) -> tuple[int, ...]:
    """Sort key: block, then conditions by the order of their levels, so that blocks stay in the order of time."""
    ranks = (study.factors[factor].index(record.levels[factor]) for factor in study.conditions)
    return (record.block, *ranks)
