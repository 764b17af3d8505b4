"""A planned benchmark, as far as advice needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeVar

from tare.analyze.derived import throttled_share
from tare.analyze.numbers import number_at
from tare.analyze.validity.completeness import SHORT
from tare.analyze.validity.load import BUSY, THROTTLED, busy, limit_reached, part_of_machine
from tare.deployments import CONTAINERD, POD
from tare.knowledge.claim import DeploymentName, Setup
from tare.record.run_record import RunRecord
from tare.study.model import Arm, ArmSettings, Study

Level = Literal["light", "medium", "full"]
LIGHT = 1 / 3
"""Share of the SUT's CPU time from which the load counts as medium."""
WAITING_FOR_DISK = 0.05
"""Share of the machine's time from which CPU time does not show how much more the system could do."""
_OF_FILES = ("file_total_size", "rw")
"""Parameters that only programs with files have: sysbench's fileio and fio."""
T = TypeVar("T", bound=Hashable)


CONTAINERS = ("container", CONTAINERD, POD)
DOCKERIZED = (*CONTAINERS, "vm-container")
_BY_ENGINE = ("container", "vm-container")
MACHINES = ("vm", "vm-container")
BARE = Setup(deployment="bare", client="bare", network="host", storage="host", engine="none", runtime="none")
"""The baseline of the arms that a dialogue asks for."""


@dataclass(frozen=True)
class BaselineLoad:
    """`None`: unknown from the records."""

    level: Level | None
    bound: Literal["cpu"] | None


def load_of(runs: Sequence[RunRecord]) -> BaselineLoad:
    """Return the load of more than half of these runs."""
    return BaselineLoad(level=_of_most(runs, _level), bound="cpu" if _of_most(runs, _spent) else None)


def _level(run: RunRecord) -> Level | None:
    cpus, threads = run.usage and run.usage.sut_cpus, number_at(run.settings, ("workload", "threads"))
    callers = number_at(run.settings, ("workload", "connections")) or threads
    offered = callers / cpus if callers is not None and cpus else None
    itself = run.settings.get("client", "") is None  # a program that is the SUT can use no more CPUs than threads
    spent = _spent(run)
    if spent is None:
        return None
    if spent and not (itself and (offered is None or offered < 1)):
        return "full"
    delivered = run.measurement and run.measurement.details.get("delivered_share")
    if delivered is not None and delivered < 1 - SHORT:
        return "full" if limit_reached(run, "client") is False else None
    return _of_cpu(run, offered if delivered is None else busy(run, "sut"), closed=delivered is None)


def _spent(run: RunRecord) -> bool | None:
    """Whether the SUT itself used up its CPU time; `None` also if it waited for CPUs that other programs used."""
    reached, used = limit_reached(run, "sut"), busy(run, "sut")
    throttled = throttled_share(run)
    own = (used is not None and used >= BUSY) or (throttled is not None and throttled >= THROTTLED)
    return None if reached and not own else reached


def _of_cpu(run: RunRecord, share: float | None, *, closed: bool) -> Level | None:
    """Classify by the share of its CPUs that the SUT could use or used; nothing if it waits for something else."""
    waited = part_of_machine(run, "iowait")
    if share is None or waited is None or waited > WAITING_FOR_DISK or (closed and share >= 1):
        return None
    return "light" if share < LIGHT else "medium"


def _of_most(runs: Sequence[RunRecord], of: Callable[[RunRecord], T | None]) -> T | None:
    answers = Counter(of(run) for run in runs)
    return next((answer for answer, n in answers.items() if 2 * n > len(runs)), None)


class Comparing(StrEnum):
    """What the benchmark compares."""

    SYSTEMS = "systems"
    CONFIGURATIONS = "configurations"
    VERSIONS = "versions"
    ABSOLUTE = "absolute"


@dataclass(frozen=True)
class PlannedArm:
    """One planned way to deploy, and its baseline."""

    name: str
    setup: Setup
    baseline: Setup
    client_host: str = "same"
    differs_in: tuple[str, ...] = ()
    """Keys of the study in which the arm differs from its baseline beside the setup; claims do not tell of them."""
    alike: tuple[str, ...] = ()
    """Further arms of which claims say the same: they differ from this one in their work or settings only."""

    @property
    def dockerized(self) -> bool:
        """Whether database or client is in a container."""
        return self.setup.deployment in DOCKERIZED or self.setup.client in DOCKERIZED


@dataclass(frozen=True)
class Levels:
    """Levels of an arm and of its baseline: factor → level."""

    own: Mapping[str, str]
    baseline: Mapping[str, str]


@dataclass(frozen=True)
class Benchmark:
    """What is compared, on what, and how production is deployed. `gap`: expected difference, a fraction."""

    name: str
    database: str | None
    arms: tuple[PlannedArm, ...]
    comparing: Comparing | None = None
    production: DeploymentName | None = None
    gap: float | None = None
    levels: Mapping[str, Levels] = field(default_factory=dict)
    """Arm of a study → its levels."""

    @property
    def dockerized(self) -> tuple[PlannedArm, ...]:
        """The arms with a container."""
        return tuple(arm for arm in self.arms if arm.dockerized)


def benchmark_of(study: Study, client_host: str = "same", storage: str | None = None) -> Benchmark:
    """Return the benchmark that a study describes: its arms, those of which claims say the same as one.

    `client_host`, `storage`: locations that differ from tare's own.
    """
    arms = {arm.name: arm for arm in study.arms if not arm.control}
    planned: dict[Hashable, PlannedArm] = {}
    for arm in arms.values():
        baseline = arms[study.baseline_of(arm.name)]
        setup, base = setup_of(arm, storage), setup_of(baseline, storage)
        beside = tuple(key for key in _differences(arm, baseline) if not _told(key, setup, base))
        kind = (setup, base, beside, *(f"{key}={value}" for key, value in _around(arm).items()))
        if kind in planned:
            planned[kind] = replace(planned[kind], alike=(*planned[kind].alike, arm.name))
        else:
            planned[kind] = PlannedArm(arm.name, setup, base, client_host, beside)
    first = study.arms[0].settings
    database = first.sut.database or first.workload_name.partition("-")[0]
    levels = {arm.name: Levels(arm.levels, arms[study.baseline_of(arm.name)].levels) for arm in arms.values()}
    return Benchmark(study.name, database, tuple(planned.values()), levels=levels)


_IN_SETUP = frozenset(
    {
        "sut.deployment", "sut.network", "sut.engine", "sut.runtime", "sut.storage.kind", "sut.pod.cni",
        "client.deployment", "client.network", "client.engine", "client.runtime",
    }
)  # fmt: skip
_OF_DEPLOYMENT = ("sut.vm", "sut.pod")


def _told(key: str, setup: Setup, base: Setup) -> bool:
    """Whether setups tell of a difference: it is part of them, or comes with another deployment or storage."""
    moved = setup.deployment != base.deployment and key.startswith(_OF_DEPLOYMENT)
    return key in _IN_SETUP or moved or (setup.storage != base.storage and key.startswith("sut.storage."))


def _differences(arm: Arm, baseline: Arm) -> Iterator[str]:
    here, there = (
        {**_flat(each.settings.model_dump(mode="json")), "workload.name": each.settings.workload_name}
        for each in (arm, baseline)
    )
    del here["workload_name"], there["workload_name"]
    yield from (key for key in dict.fromkeys((*there, *here)) if here.get(key) != there.get(key))


def _around(arm: Arm) -> dict[str, Any]:
    """Everything around server and client: all but their work and the server's settings."""
    flat = _flat({side: each.model_dump(mode="json") for side, each in arm.settings.sides.items()})
    return {key: value for key, value in flat.items() if not key.startswith("sut.settings.")}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def setup_of(arm: Arm, storage: str | None = None) -> Setup:
    """Return how an arm is deployed, in the terms of claims; `storage`: of containers, if not tare's own."""
    settings = arm.settings
    contained = settings.sut.deployment in DOCKERIZED
    client = None if settings.client is None else settings.client.deployment
    anything = contained or client in DOCKERIZED
    around = POD if _in_cluster(settings) else settings.sut.deployment
    return Setup.model_validate(
        {
            "deployment": settings.sut.deployment,
            "client": client,
            "network": network_of(settings),
            "storage": _storage(settings, storage, contained=contained),
            "engine": settings.sut.engine or engine_of(around, anything=anything),
            "runtime": _runtime(settings, anything=anything),
        }
    )


def engine_of(sut: str, *, anything: bool) -> str:
    """Return the engine of the SUT's container, else of the client's; in a virtual machine, tare uses no engine."""
    if sut in {CONTAINERD, POD}:
        return "containerd"
    return "docker" if anything and sut != "vm-container" else "none"


def runtime_of(sut: str, *, anything: bool) -> str:
    """Return the OCI runtime likewise."""
    return "crun" if sut == "vm-container" else "runc" if anything else "none"


def _runtime(settings: ArmSettings, *, anything: bool) -> str | None:
    """Return the arm's runtime; the default of a cluster, or of an engine other than Docker, is unknown."""
    if settings.sut.runtime is not None:
        return settings.sut.runtime
    if _in_cluster(settings) or settings.sut.engine not in (None, "docker"):
        return None
    return runtime_of(settings.sut.deployment, anything=anything)


def _in_cluster(settings: ArmSettings) -> bool:
    """Whether a cluster makes the containers: the SUT's, or the client's if the SUT is in none."""
    sut, client = settings.sut, settings.client
    client_is = client is not None and client.deployment == POD
    return sut.deployment == POD or (client_is and sut.deployment not in _BY_ENGINE)


def network_of(settings: ArmSettings) -> str:
    """Return the path from client to SUT, in the terms of claims."""
    if settings.client is None:
        return "none"
    alone = settings.sut.deployment == "bare"
    own = "host" if alone else str(settings.sut.network)
    if own == "pod" and settings.sut.pod is not None and settings.sut.pod.cni == "macvlan":
        own = "pod-macvlan"
    return path_in_words(own, settings.client.deployment, settings.client.network)


def path_in_words(own: str, client: str, client_network: str) -> str:
    """Do the same from the SUT's network and the client's deployment and network."""
    if client_network == "shared":
        return "shared"
    if client == POD and client_network == "pod" and own == "host":
        return "bridge"
    if client not in _BY_ENGINE or client_network == "host" or own == "bridge":
        return str(own)
    return "client-nat" if own == "host" else f"{own}-client-nat"


def _storage(settings: ArmSettings, given: str | None, *, contained: bool) -> str:
    """Return the data's location; for tare's containers a directory of the host, unless the arm says otherwise."""
    if settings.sut.database is None and settings.workload.keys().isdisjoint(_OF_FILES):
        return "none"
    own = settings.sut.storage.kind
    if own != "bind":
        return own
    return (given or own) if contained else "host"
