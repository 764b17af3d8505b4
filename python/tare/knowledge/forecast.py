"""What claims say about a planned arm: one forecast per metric, from comparable claims and other contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tare.knowledge.benchmark import DOCKERIZED, MACHINES, Benchmark, PlannedArm
from tare.knowledge.claim import ClaimFile
from tare.knowledge.comparable import Key, key_for, key_of, matches, of
from tare.knowledge.dispute import Dispute, disputes
from tare.knowledge.pool import Pool, pool
from tare.knowledge.prior import Prior, Spreads, learned, metrics_for, prior_of

_NEAREST = 3
_MOST_DIFFERENCES = 2


@dataclass(frozen=True)
class Near:
    """A claim that is not comparable. `differs_in`: `database` and parts of the key; `unreported`: of the key."""

    claim: ClaimFile
    differs_in: tuple[str, ...]
    unreported: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """Forecast for one arm in one metric; `metric`: `None` if no claim applies.

    `published`: what the source of a replay found of this arm. `pool`: of other comparable claims; `prior`: of all
    that apply, with less weight for contexts that differ more;
    `near`: the nearest claims if none is comparable. `other_client`: how many of the pool's claims had the client
    in a container where the arm has none, or the reverse. `disputes`: pairs of contradicting claims about this
    effect. `differs_in`, `alike`: of the arm.
    """

    arm: str
    metric: str | None
    pool: Pool | None
    near: tuple[Near, ...] = ()
    other_client: int = 0
    prior: Prior | None = None
    disputes: tuple[Dispute, ...] = ()
    differs_in: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    published: Pool | None = None

    @property
    def pools(self) -> tuple[Pool, ...]:
        """What is directly comparable: the replayed source's own figures, and other claims."""
        return tuple(each for each in (self.published, self.pool) if each is not None)

    @property
    def nothing_known(self) -> bool:
        """Whether no claim applies."""
        return not self.pools and self.prior is None

    @property
    def borrowed(self) -> bool:
        """Whether only claims of other contexts apply."""
        return not self.pools and self.prior is not None


def forecasts(benchmark: Benchmark, claims: Sequence[ClaimFile]) -> tuple[Forecast, ...]:
    """Return forecasts for every planned arm but baselines: one for each metric with a claim, else a single one."""
    differing = [arm for arm in benchmark.arms if arm.setup != arm.baseline or arm.differs_in]
    if not differing:
        return ()
    spreads = learned(claims)
    return tuple(
        replace(forecast, differs_in=arm.differs_in, alike=arm.alike)
        for planned in differing
        for arm, own in _by_replayed(planned, benchmark, claims)
        for forecast in _of_arm(arm, benchmark.database, claims, spreads, own)
    )


@dataclass(frozen=True)
class _Own:
    """Claims that a study's source makes of an arm: of its very baseline, and against another arm."""

    here: tuple[ClaimFile, ...] = ()
    elsewhere: tuple[ClaimFile, ...] = ()


def replayed(benchmark: Benchmark, arm: str, claims: Sequence[ClaimFile]) -> tuple[ClaimFile, ...]:
    """Return the claims that this arm of a study replays, against the baseline that it has."""
    return _own(benchmark, arm, claims).here


def _own(benchmark: Benchmark, arm: str, claims: Sequence[ClaimFile]) -> _Own:
    levels = benchmark.levels.get(arm)
    if levels is None:
        return _Own()
    of = [
        (known, replay)
        for known in claims
        if (replay := known.claim.replay) is not None and replay.of(benchmark.name, levels.own)
    ]
    return _Own(
        tuple(known for known, replay in of if replay.against(levels.baseline)),
        tuple(known for known, replay in of if not replay.against(levels.baseline)),
    )


def _by_replayed(
    planned: PlannedArm, benchmark: Benchmark, claims: Sequence[ClaimFile]
) -> Iterator[tuple[PlannedArm, _Own]]:
    """Yield arms of one setup, together where their source says the same of them."""
    owns = {name: _own(benchmark, name, claims) for name in (planned.name, *planned.alike)}
    together: dict[tuple[str, ...], list[str]] = {}
    for name, own in owns.items():
        together.setdefault(tuple(known.id for known in own.here), []).append(name)
    for names in together.values():
        first, *others = names
        elsewhere = {known.id: known for name in names for known in owns[name].elsewhere}
        yield (
            replace(planned, name=first, alike=tuple(others)),
            replace(owns[first], elsewhere=tuple(elsewhere.values())),
        )


def _of_arm(
    arm: PlannedArm, database: str | None, claims: Sequence[ClaimFile], spreads: Spreads, own: _Own
) -> tuple[Forecast, ...]:
    if arm.setup == arm.baseline and not own.here:
        return (Forecast(arm.name, None, None),)
    metrics = dict.fromkeys(key.metric for known in claims if (key := key_of(known.claim)) is not None)
    borrowable = metrics_for(database, claims)
    made = []
    for metric in metrics:
        wanted = key_for(metric, arm.setup, arm.baseline, arm.client_host)
        published = pool([known for known in own.here if known.claim.effect.metric == metric])
        summed = pool([known for known in comparable(claims, wanted, database) if known not in own.here])
        prior = prior_of(arm, database, metric, claims, spreads) if metric in borrowable else None
        if published is not None or summed is not None or prior is not None:
            listed = () if summed is None else summed.listed
            made.append(
                Forecast(
                    arm.name,
                    metric,
                    summed,
                    other_client=sum(_has_other_client(known, arm) for known in listed),
                    prior=prior,
                    disputes=disputes(claims, wanted, database),
                    published=published,
                )
            )
    if any(each.pools for each in made):
        return tuple(made)
    elsewhere = [Near(known, ("baseline",)) for known in own.elsewhere]
    others = [near for near in _nearest(arm, database, claims) if near.claim not in own.elsewhere]
    near = (*elsewhere, *others)[:_NEAREST]
    return (replace(made[0], near=near), *made[1:]) if made else (Forecast(arm.name, None, None, near),)


def _has_other_client(known: ClaimFile, arm: PlannedArm) -> bool:
    context = known.claim.context
    client = None if context is None else context.arm.client
    if client is None or arm.setup.client is None:
        return False
    return (client in DOCKERIZED) != (arm.setup.client in DOCKERIZED)


def comparable(claims: Sequence[ClaimFile], wanted: Key, database: str | None) -> tuple[ClaimFile, ...]:
    """Return the claims about the wanted effect."""
    return tuple(known for known in claims if matches(known.claim, wanted, database))


def _nearest(arm: PlannedArm, database: str | None, claims: Sequence[ClaimFile]) -> tuple[Near, ...]:
    """Return claims that differ in one or two parts of the key, fewest first; then by same database, by same path.

    For virtual machines without such claims, return any claim about them.
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
            each.claim.claim.source.weak, len(each.differs_in) + len(each.unreported),
            "database" in each.differs_in, "network" in each.differs_in,
        ),
    )  # fmt: skip
    one_a_kind = {(each.claim.study, each.differs_in): each for each in reversed(ordered)}
    return tuple(each for each in ordered if each in one_a_kind.values())[:_NEAREST]


def _of_machines(wanted: Key, database: str | None, claims: Sequence[ClaimFile]) -> list[Near]:
    """Return claims, also qualitative ones, of the same deployment, or with a machine on the same sides."""
    made = []
    for known in claims:
        context = known.claim.context
        if context is None or known.claim.how.summary_of is not None:
            continue
        key = key_for("", context.arm, context.baseline, context.client_host)
        if key.deployment == wanted.deployment or _layers(key) == _layers(wanted):
            differs = key.differences(wanted)
            other = () if of(known.claim, database) else ("database",)
            made.append(Near(known, (*other, *differs), key.unreported))
    return made


def _layers(key: Key) -> tuple[bool, bool]:
    """Whether arm and baseline are in a virtual machine."""
    return key.deployment in MACHINES, key.baseline_deployment in MACHINES
