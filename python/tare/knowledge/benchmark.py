"""A benchmark that somebody plans, as far as advice needs to know it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tare.knowledge.claim import DeploymentName, Setup
from tare.study.model import Arm, ArmSettings, Study

DOCKERIZED = ("container", "vm-container")
MACHINES = ("vm", "vm-container")


BARE = Setup(deployment="bare", client="bare", network="host", storage="host", engine="none", runtime="none")
"""What a container is compared with where a study has nothing without one."""


class Comparing(StrEnum):
    """What the benchmark is to compare."""

    SYSTEMS = "systems"
    CONFIGURATIONS = "configurations"
    VERSIONS = "versions"
    ABSOLUTE = "absolute"


@dataclass(frozen=True)
class PlannedArm:
    """One way to deploy that is planned, and what its overhead would be told against."""

    name: str
    setup: Setup
    baseline: Setup
    client_host: str = "same"

    @property
    def dockerized(self) -> bool:
        """Whether database or client is in a container."""
        return self.setup.deployment in DOCKERIZED or self.setup.client in DOCKERIZED


@dataclass(frozen=True)
class Benchmark:
    """What is compared, on what, and how production is deployed. `gap`: expected difference, a fraction."""

    name: str
    database: str | None
    arms: tuple[PlannedArm, ...]
    comparing: Comparing | None = None
    production: DeploymentName | None = None
    gap: float | None = None

    @property
    def dockerized(self) -> tuple[PlannedArm, ...]:
        """The arms with a container in them."""
        return tuple(arm for arm in self.arms if arm.dockerized)


def benchmark_of(study: Study, client_host: str = "same", storage: str | None = None) -> Benchmark:
    """The benchmark that a study describes: its different ways to deploy, whatever else it varies.

    `client_host`, `storage`: where these are to be other than tare does it.
    """
    arms = {arm.name: arm for arm in study.arms if not arm.control}
    planned: dict[tuple[Setup, Setup], PlannedArm] = {}
    for arm in arms.values():
        setup = setup_of(arm, storage)
        base = setup_of(arms[study.baseline_of(arm.name)], storage)
        base = BARE if base == setup and base.deployment in DOCKERIZED else base
        planned.setdefault((setup, base), PlannedArm(arm.name, setup, base, client_host))
    first = study.arms[0].settings
    database = first.sut.database or first.workload_name.partition("-")[0]
    return Benchmark(study.name, database, tuple(planned.values()))


def setup_of(arm: Arm, storage: str | None = None) -> Setup:
    """How an arm is deployed, in the claims' words; `storage`: of containers, if other than tare's own."""
    settings = arm.settings
    contained = settings.sut.deployment in DOCKERIZED
    client = None if settings.client is None else settings.client.deployment
    anything = contained or client in DOCKERIZED
    return Setup.model_validate(
        {
            "deployment": settings.sut.deployment,
            "client": client,
            "network": network_of(settings),
            "storage": _storage(settings, storage, contained=contained),
            "engine": engine_of(settings.sut.deployment, anything=anything),
            "runtime": runtime_of(settings.sut.deployment, anything=anything),
        }
    )


def engine_of(sut: str, *, anything: bool) -> str:
    """Of the SUT's container, else of the client's; in a virtual machine tare makes containers without one."""
    return "docker" if anything and sut != "vm-container" else "none"


def runtime_of(sut: str, *, anything: bool) -> str:
    """The same of the OCI runtime."""
    return "crun" if sut == "vm-container" else "runc" if anything else "none"


def network_of(settings: ArmSettings) -> str:
    """The path from client to SUT, in the claims' words."""
    if settings.client is None:
        return "none"
    alone = settings.sut.deployment == "bare"
    own = "host" if alone else settings.sut.network
    return path_in_words(own, settings.client.deployment, settings.client.network)


def path_in_words(own: str, client: str, client_network: str) -> str:
    """The same, of the SUT's network and the client's deployment and network."""
    if client_network == "shared":
        return "shared"
    if client not in DOCKERIZED or client_network == "host" or own == "bridge":
        return str(own)
    return "client-nat" if own == "host" else f"{own}-client-nat"


def _storage(settings: ArmSettings, given: str | None, *, contained: bool) -> str:
    """Where the data lie; of tare's containers in a directory of the host, unless the arm says otherwise."""
    if settings.sut.database is None and "file_total_size" not in settings.workload:
        return "none"
    own = settings.sut.storage.kind
    return (given or own) if contained else "host" if own == "bind" else own
