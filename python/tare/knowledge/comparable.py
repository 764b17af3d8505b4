"""Which claims are comparable: the same metric over the same path, storage and engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter

from tare.knowledge.claim import Claim, Qualitative, Setup

FAMILIES: Mapping[str, str] = {"mariadb": "mysql", "percona-server": "mysql", "mysql": "mysql"}
"""Databases with a common origin; only `matches` uses it."""


@dataclass(frozen=True)
class Key:
    """What must be equal for two effects to be comparable; `None`: not stated.

    Comparable claims may differ in database, workload, load and machine; reports show these.
    """

    metric: str
    deployment: str
    network: str | None
    storage: str | None
    engine: str | None
    runtime: str | None
    baseline_deployment: str
    baseline_network: str | None
    baseline_storage: str | None
    client_host: str | None

    @property
    def whole(self) -> bool:
        """Whether every part is stated, which pooling requires."""
        return not self.unreported

    @property
    def unreported(self) -> tuple[str, ...]:
        """Parts not stated for arm or baseline: `network`, `storage`, `engine`, `runtime`, `client_host`."""
        names = (name for name, part in zip(_NAMES, _parts(self), strict=True) if part is None)
        return tuple(dict.fromkeys(name.removeprefix("baseline_") for name in names))

    def differences(self, other: Key) -> tuple[str, ...]:
        """Return names of the parts that both state and that differ."""
        pairs = zip(_NAMES, _parts(self), _parts(other), strict=True)
        return tuple(name for name, mine, theirs in pairs if mine != theirs and None not in (mine, theirs))


_NAMES = tuple(each.name for each in fields(Key))
_parts = attrgetter(*_NAMES)


def key_of(claim: Claim) -> Key | None:
    """Return the key of a claim; `None` for a qualitative one."""
    if claim.context is None or isinstance(claim.effect, Qualitative):
        return None
    context = claim.context
    return key_for(claim.effect.metric, context.arm, context.baseline, context.client_host)


def key_for(metric: str, arm: Setup, baseline: Setup, client_host: str | None) -> Key:
    """Return the key of an effect of `arm` against `baseline`."""
    return Key(
        metric=metric,
        deployment=arm.deployment,
        network=arm.network,
        storage=arm.storage,
        engine=arm.engine,
        runtime=arm.runtime,
        baseline_deployment=baseline.deployment,
        baseline_network=baseline.network,
        baseline_storage=baseline.storage,
        client_host=client_host,
    )


def matches(claim: Claim, wanted: Key, database: str | None) -> bool:
    """Whether a claim is about the wanted effect. Unstated parts match for the same database only."""
    if isinstance(claim.effect, Qualitative) or claim.effect.metric != wanted.metric:
        return False  # most claims, of which no key is made
    key = key_of(claim)
    if key is None or claim.context is None or key.differences(wanted):
        return False
    if wanted.storage == "none" and key.metric.startswith("disk_"):
        return False  # without data there is nothing to read or write
    return key.whole or of(claim, database)


def of(claim: Claim, database: str | None) -> bool:
    """Whether a claim is of this database or of one of its family."""
    return claim.context is not None and _family(claim.context.database.name) == _family(database)


def _family(database: str | None) -> str | None:
    return None if database is None else FAMILIES.get(database, database)
