"""What claims say of a planned arm: one forecast a metric, or what comes nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tare.knowledge.benchmark import DOCKERIZED, MACHINES, Benchmark, PlannedArm
from tare.knowledge.claim import ClaimFile
from tare.knowledge.comparable import Key, key_for, key_of, matches, of
from tare.knowledge.pool import Pool, pool

_NEAREST = 3
_MOST_DIFFERENCES = 2


@dataclass(frozen=True)
class Near:
    """A claim that is not comparable. `differs_in`: `database` and parts of the key; `untold`: of the key."""

    claim: ClaimFile
    differs_in: tuple[str, ...]
    untold: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """Of one arm in one metric. `metric` and `pool`: `None` where no claim is comparable; `near` then tells.

    `other_client`: of the pool's claims, how many had their client in a container where the arm has none, or the
    other way round.
    """

    arm: str
    metric: str | None
    pool: Pool | None
    near: tuple[Near, ...] = ()
    other_client: int = 0

    @property
    def nothing_known(self) -> bool:
        """Whether no claim is comparable."""
        return self.pool is None


def forecasts(benchmark: Benchmark, claims: Sequence[ClaimFile]) -> tuple[Forecast, ...]:
    """For every planned arm that differs from its baseline: a forecast a metric that something is known of."""
    differing = [arm for arm in benchmark.arms if arm.setup != arm.baseline or arm.dockerized]
    return tuple(forecast for arm in differing for forecast in _of_arm(arm, benchmark.database, claims))


def _of_arm(arm: PlannedArm, database: str | None, claims: Sequence[ClaimFile]) -> tuple[Forecast, ...]:
    metrics = dict.fromkeys(key.metric for known in claims if (key := key_of(known.claim)) is not None)
    made = []
    for metric in metrics:
        wanted = key_for(metric, arm.setup, arm.baseline, arm.client_host)
        if summed := pool(comparable(claims, wanted, database)):
            others = sum(_has_other_client(known, arm) for known in summed.listed)
            made.append(Forecast(arm.name, metric, summed, other_client=others))
    return tuple(made) or (Forecast(arm.name, None, None, _nearest(arm, database, claims)),)


def _has_other_client(known: ClaimFile, arm: PlannedArm) -> bool:
    context = known.claim.context
    client = None if context is None else context.arm.client
    if client is None or arm.setup.client is None:
        return False
    return (client in DOCKERIZED) != (arm.setup.client in DOCKERIZED)


def comparable(claims: Sequence[ClaimFile], wanted: Key, database: str | None) -> tuple[ClaimFile, ...]:
    """The claims that tell of what is wanted."""
    return tuple(known for known in claims if matches(known.claim, wanted, database))


def _nearest(arm: PlannedArm, database: str | None, claims: Sequence[ClaimFile]) -> tuple[Near, ...]:
    """Claims that differ in one or two parts of the key, fewest first; then those of the database, of the path.

    Of virtual machines, where none does, what is said of them at all.
    """
    wanted = key_for("", arm.setup, arm.baseline, arm.client_host)
    near = [
        Near(known, differs if of(known.claim, database) else ("database", *differs))
        for known in claims
        if (key := key_of(known.claim)) is not None
        and key.whole
        and known.claim.how.summary_of is None
        and len(differs := replace(key, metric="").differences(wanted)) <= _MOST_DIFFERENCES
    ]
    if not near and wanted.deployment in MACHINES:
        near = _of_machines(wanted, database, claims)
    ordered = sorted(
        near,
        key=lambda each: (
            each.claim.claim.source.weak, len(each.differs_in) + len(each.untold),
            "database" in each.differs_in, "network" in each.differs_in,
        ),
    )  # fmt: skip
    one_a_kind = {(each.claim.study, each.differs_in): each for each in reversed(ordered)}
    return tuple(each for each in ordered if each in one_a_kind.values())[:_NEAREST]


def _of_machines(wanted: Key, database: str | None, claims: Sequence[ClaimFile]) -> list[Near]:
    """Claims, those in words too, of the same deployment, or with a machine on the same sides as is wanted."""
    made = []
    for known in claims:
        context = known.claim.context
        if context is None or known.claim.how.summary_of is not None:
            continue
        key = key_for("", context.arm, context.baseline, context.client_host)
        if key.deployment == wanted.deployment or _layers(key) == _layers(wanted):
            differs = key.differences(wanted)
            other = () if of(known.claim, database) else ("database",)
            made.append(Near(known, (*other, *differs), key.untold))
    return made


def _layers(key: Key) -> tuple[bool, bool]:
    """Whether arm and baseline are in a virtual machine."""
    return key.deployment in MACHINES, key.baseline_deployment in MACHINES
