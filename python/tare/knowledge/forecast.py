"""What claims say of a planned arm: one forecast a metric, or what comes nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tare.knowledge.benchmark import Benchmark, PlannedArm
from tare.knowledge.comparable import Key, key_for, key_of, matches, of
from tare.knowledge.pool import Pool, pool
from tare.knowledge.read import Known

_NEAREST = 3
_MOST_DIFFERENCES = 2


@dataclass(frozen=True)
class Near:
    """A claim that is not comparable, and in what it differs."""

    claim: Known
    differs_in: tuple[str, ...]


@dataclass(frozen=True)
class Forecast:
    """Of one arm in one metric. `metric` and `pool`: `None` where no claim is comparable; `near` then tells."""

    arm: str
    metric: str | None
    pool: Pool | None
    near: tuple[Near, ...] = ()

    @property
    def nothing_known(self) -> bool:
        """Whether no claim is comparable."""
        return self.pool is None


def forecasts(benchmark: Benchmark, claims: Sequence[Known]) -> tuple[Forecast, ...]:
    """For every planned arm that differs from its baseline: a forecast a metric that something is known of."""
    differing = [arm for arm in benchmark.arms if arm.setup != arm.baseline or arm.dockerized]
    return tuple(found for arm in differing for found in _of_arm(arm, benchmark.database, claims))


def _of_arm(arm: PlannedArm, database: str | None, claims: Sequence[Known]) -> tuple[Forecast, ...]:
    metrics = dict.fromkeys(key.metric for known in claims if (key := key_of(known.claim)) is not None)
    found = []
    for metric in metrics:
        wanted = key_for(metric, arm.setup, arm.baseline, arm.client_host)
        if summed := pool(comparable(claims, wanted, database)):
            found.append(Forecast(arm.name, metric, summed))
    return tuple(found) or (Forecast(arm.name, None, None, _nearest(arm, database, claims)),)


def comparable(claims: Sequence[Known], wanted: Key, database: str | None) -> tuple[Known, ...]:
    """The claims that tell of what is wanted."""
    return tuple(known for known in claims if matches(known.claim, wanted, database))


def _nearest(arm: PlannedArm, database: str | None, claims: Sequence[Known]) -> tuple[Near, ...]:
    """Claims that differ in one or two parts of the key, fewest first; then those of the database, of the path."""
    wanted = key_for("", arm.setup, arm.baseline, arm.client_host)
    near = []
    for known in claims:
        key = key_of(known.claim)
        if key is None or not key.whole or known.claim.how.summary_of is not None:
            continue
        differs = replace(key, metric="").differences(wanted)
        if len(differs) <= _MOST_DIFFERENCES:
            near.append(Near(known, differs))
    ordered = sorted(
        near,
        key=lambda each: (len(each.differs_in), not of(each.claim.claim, database), "network" in each.differs_in),
    )
    one_a_kind = {(each.claim.study, each.differs_in): each for each in reversed(ordered)}
    return tuple(each for each in ordered if each in one_a_kind.values())[:_NEAREST]
