"""The figures of `make bench-protocol` from its stored studies, each marked as measured or computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.protocol.costs import (
    Judge,
    Rounds,
    Run,
    Verdicts,
    by_pairs,
    by_welch,
    by_windows,
    joined,
    measured_seconds,
    pair_seconds,
    pooled_spread,
    rounds_for,
    runs_for,
    sequential,
    variances,
    width_of,
    windows_claim,
    wrong,
)
from bench.protocol.pools import BASELINE, INJECTED, MEASURE_S, POOLS, TITLE
from tare.calibrate.archive import Archive
from tare.calibrate.pooled import Injected, injected
from tare.calibrate.summary import Identity
from tare.plan.expand import CONTROL
from tare.protocols.stopping import Rule
from tare.record.run_record import RunRecord
from tare.record.swap_halves import throughput_of
from tare.store import open_store

TARGETS = (0.02, 0.01)


@dataclass(frozen=True)
class Way:
    """A way to analyze runs. `pool`: whose runs; `stop`: whose width decides; `looks`: after how many rounds.

    `with_control`: machine time of a study of one arm, by that of the arm and its baseline. The control that tare's
    own protocols always have is one more run a round, in a duet one more pair; publications have none.
    """

    name: str
    pool: str
    judge: Judge
    stop: Judge
    looks: Callable[[int], bool]
    with_control: float = 1.0


def _always(blocks: int) -> bool:
    return blocks >= 2


WAYS = (
    Way("interleave", "interleave", by_pairs, sequential, Rule().looks_at, with_control=1.5),
    Way("rotate", "rotate", by_pairs, sequential, Rule().looks_at, with_control=1.5),
    Way("duet", "duet", by_pairs, sequential, Rule().looks_at, with_control=2.0),
    Way("fixed", "together", by_welch, by_welch, _always),
    Way("buckets", "together", by_windows, by_windows, _always),
)


@dataclass(frozen=True)
class Published:
    """How long a publication measured, and how often. `measure_s`: `None` where it gives no time."""

    study: str
    measure_s: float | None
    runs: int


PUBLISHED = (
    Published("percona-2016", 1800.0, 1),
    Published("bth-thesis", 1200.0, 10),
    Published("grambow-2018", None, 5),
)


@dataclass(frozen=True)
class Cost:
    """Machine seconds of one arm and its baseline to ± `target`. `claimed`: by an interval that does not hold.

    `with_control_s`: computed, of a study of that one arm with its control, if any; `times_interleave`: of that.
    """

    way: str
    target: float
    measured_s: float | None
    computed_s: float | None
    with_control_s: float | None
    times_interleave: float | None
    claimed: bool


@dataclass(frozen=True)
class Wrong:
    """Stretches whose interval leaves the truth out, of identical servers and of the injected effect."""

    way: str
    identical: Verdicts
    injected: Verdicts


@dataclass(frozen=True)
class AsPublished:
    """Computed, none of it measured. `width`: half of the interval after the published runs; `None` for one run."""

    study: str
    measure_s: float
    runs: int
    seconds: float
    width: float | None
    runs_to: Mapping[str, int]
    seconds_to: Mapping[str, float]
    times_interleave: Mapping[str, float | None]


@dataclass(frozen=True)
class Figures:
    """All that is known of this machine."""

    identity: Identity
    studies: Mapping[str, int]
    machine_s: Mapping[str, float]
    spread: Mapping[str, float | None]
    pair_s: Mapping[str, float]
    within: float | None
    between: float | None
    wrong: tuple[Wrong, ...]
    costs: tuple[Cost, ...]
    published: tuple[AsPublished, ...]
    injected: Mapping[str, Injected]


@dataclass(frozen=True)
class Pool:
    """Rounds of all finished studies of a pool, by arm. `machine_s`: of all their attempts, failed ones too."""

    control: tuple[Rounds, ...]
    injected: tuple[Rounds, ...]
    effect: Injected
    machine_s: float

    @property
    def both(self) -> tuple[Rounds, ...]:
        """Identical servers and the injected effect."""
        return (*self.control, *self.injected)


def pool_of(archive: Archive, identity: Identity, name: str) -> Pool | None:
    """Read the finished studies of a pool; `None` where there is none."""
    places = [place for place in archive.places(identity) if place.kind == name]
    known = [(place, studied) for place in places if (studied := archive.studied(place)) is not None]
    if not known:
        return None
    effect = injected([each for _, studied in known for each in studied.observed], TITLE)
    truth = math.log1p(effect.truth.point or 0.0)
    stores = [open_store(place.path).records() for place, _ in known]
    return Pool(
        control=tuple(_rounds(records, CONTROL, 0.0) for records in stores),
        injected=tuple(_rounds(records, INJECTED, truth) for records in stores),
        effect=effect,
        machine_s=sum(studied.effort.machine_s for _, studied in known),
    )


def _rounds(records: Sequence[RunRecord], arm: str, truth: float) -> Rounds:
    """The good runs of an arm with those of the baseline in the same block."""
    good: dict[tuple[int, str], Run] = {}
    for record in records:
        rate = throughput_of(record)
        if record.outcome.ok and rate:
            good[record.block, record.arm] = Run(rate, _windows(record), record.machine_s)
    blocks = sorted(block for block, name in good if name == arm and (block, BASELINE) in good)
    return Rounds(tuple((good[block, arm], good[block, BASELINE]) for block in blocks), truth)


def _windows(record: RunRecord) -> tuple[float, ...]:
    windows = () if record.measurement is None else record.measurement.windows
    return tuple(rate for window in windows if (rate := window.throughput_per_s) is not None)


def figures(archive: Archive, identity: Identity) -> Figures:
    """All figures of the stored studies of this machine."""
    pools = {name: pool for name in POOLS if (pool := pool_of(archive, identity, name)) is not None}
    found_costs = tuple(costs(pools))
    together = pools.get("together")
    parts = None if together is None else variances(together.both)
    return Figures(
        identity=identity,
        studies={name: len(pool.control) for name, pool in pools.items()},
        machine_s={name: pool.machine_s for name, pool in pools.items()},
        spread={name: pooled_spread(pool.both) for name, pool in pools.items()},
        pair_s={name: pair_seconds(pool.both) for name, pool in pools.items()},
        within=None if parts is None else parts.within,
        between=None if parts is None else parts.between,
        wrong=tuple(
            Wrong(way.name, wrong(pools[way.pool].control, way.judge), wrong(pools[way.pool].injected, way.judge))
            for way in WAYS
            if way.pool in pools
        ),
        costs=found_costs,
        published=() if together is None else tuple(published(together, found_costs)),
        injected={name: pool.effect for name, pool in pools.items()},
    )


def costs(pools: Mapping[str, Pool]) -> Iterator[Cost]:
    """Every way to every target, as far as there are pools."""
    for target in TARGETS:
        default = _with_control(WAYS[0], pools, target)
        for way in WAYS:
            if way.pool not in pools:
                continue
            pool = pools[way.pool]
            whole = _with_control(way, pools, target)
            yield Cost(
                way=way.name,
                target=target,
                measured_s=measured_seconds(
                    [joined(pool.control), joined(pool.injected)], way.stop, target, way.looks
                ),
                computed_s=_computed(way, pools, target),
                with_control_s=whole,
                times_interleave=whole / default if whole and default else None,
                claimed=way.name == "buckets",
            )


def _with_control(way: Way, pools: Mapping[str, Pool], target: float) -> float | None:
    computed = _computed(way, pools, target)
    return None if computed is None else way.with_control * computed


def _computed(way: Way, pools: Mapping[str, Pool], target: float) -> float | None:
    """From the pool's variances, at the length at which it was measured."""
    pool = pools.get(way.pool)
    spread = None if pool is None else pooled_spread(pool.both)
    if pool is None or spread is None:
        return None
    pair_s = pair_seconds(pool.both)
    if way.pool != "together":
        return rounds_for(target, spread) * pair_s
    parts, windows = variances(pool.both), MEASURE_S
    runs = windows_claim(target, parts, windows) if way.name == "buckets" else runs_for(target, parts, windows)
    return runs * pair_s


def published(pool: Pool, known: Sequence[Cost]) -> Iterator[AsPublished]:
    """What fixed runs of the published length would cost with the variances that were measured here.

    They are held against the default protocol with its control, which publications do without.
    """
    parts = variances(pool.both)
    beside_s = pair_seconds(pool.both) / 2 - MEASURE_S
    default = {f"{cost.target:g}": cost.with_control_s for cost in known if cost.way == "interleave"}
    for one in PUBLISHED:
        measure_s = one.measure_s or MEASURE_S
        run_s = measure_s + beside_s
        runs = {f"{target:g}": runs_for(target, parts, measure_s) for target in TARGETS}
        seconds = {target: 2 * n * run_s for target, n in runs.items()}
        yield AsPublished(
            study=one.study,
            measure_s=measure_s,
            runs=one.runs,
            seconds=2 * one.runs * run_s,
            width=width_of(one.runs, parts, measure_s),
            runs_to=runs,
            seconds_to=seconds,
            times_interleave={
                target: spent / reference if (reference := default.get(target)) else None
                for target, spent in seconds.items()
            },
        )
