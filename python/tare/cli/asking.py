"""The dialogue of `tare advise` without a study: four questions, and one for each planned arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import typer

from tare.deployments import NetworkKind
from tare.errors import StudyError
from tare.knowledge.benchmark import BARE, Benchmark, Comparing, PlannedArm
from tare.knowledge.claim import DeploymentName, Setup
from tare.study.load import loads
from tare.study.model import Arm, Study
from tare.study.registry import Registry, installed
from tare.study.starter import starter
from tare.study.suggest import did_you_mean

DEPLOYMENTS: Mapping[str, DeploymentName] = {
    "bare": "bare", "container": "container", "vm": "vm", "vm-container": "vm-container"
}  # fmt: skip
_NETWORKS = ("host", "bridge", "published-loopback", "published-address", "shared")
_STORAGE = ("bind", "layer", "volume", "tmpfs", "block", "nfs")
_RUNS = ("bare", "container")


def asked() -> tuple[Benchmark, Study | None]:
    """The benchmark as it was told, and a study of its arms where tare can run them."""
    comparing = Comparing(_one_of("What is compared", tuple(Comparing), "systems"))
    database = typer.prompt("Database", default="mariadb", err=True)
    production = _one_of("Production is deployed", (*DEPLOYMENTS, "unknown"), "unknown")
    gap = typer.prompt("Expected difference in percent (0: not known)", default=0.0, type=float, err=True)
    host = _one_of("The load generator runs on which host", ("same", "other"), "same")
    arms: list[PlannedArm] = []
    while not arms or typer.confirm("Another arm?", default=False, err=True):
        arms.append(_arm(len(arms) + 1, host))
    benchmark = Benchmark(
        name="my-benchmark",
        database=database,
        arms=tuple(arms),
        comparing=comparing,
        gap=gap / 100 if gap > 0 else None,
    )
    if production in DEPLOYMENTS:
        benchmark = replace(benchmark, production=DEPLOYMENTS[production])
    return benchmark, study_of(benchmark, installed())


def _arm(number: int, host: str) -> PlannedArm:
    deployment = _one_of(f"Arm {number} is deployed", tuple(DEPLOYMENTS), "container")
    if deployment == "bare":
        return PlannedArm(f"bare-{number}", BARE, BARE, host)
    network = _one_of("  network", _NETWORKS, "host")
    storage = "host" if deployment == "vm" else _one_of("  data on", _STORAGE, "bind")
    contained = deployment != "vm"
    setup = Setup.model_validate(
        {
            "deployment": deployment,
            "client": "bare",
            "network": network,
            "storage": storage,
            "engine": "docker" if contained else "none",
            "runtime": "runc" if contained else "none",
        }
    )
    return PlannedArm(f"{deployment}-{network}-{number}", setup, BARE, host)


def study_of(benchmark: Benchmark, registry: Registry) -> Study | None:
    """A study of bare and the planned arms, from the one that `tare init` writes; `None` where tare cannot."""
    can = benchmark.database in registry.recipes and benchmark.database == "mariadb"
    arms = [arm for arm in benchmark.arms if arm.setup.deployment != "bare"]
    if not can or not arms or not all(_runs(arm) for arm in arms):
        return None
    template = loads(starter(benchmark.name), registry)
    bare = next(arm for arm in template.arms if arm.name == "bare")
    made = [bare, *(_made(bare, arm) for arm in arms)]
    return template.model_copy(update={"arms": tuple(made), "baseline": "bare"})


def _runs(arm: PlannedArm) -> bool:
    return arm.setup.deployment in _RUNS and arm.setup.storage == "bind" and arm.client_host == "same"


def _made(bare: Arm, arm: PlannedArm) -> Arm:
    network = NetworkKind(arm.setup.network or "host")
    shared = network is NetworkKind.SHARED
    sut = bare.settings.sut.model_copy(
        update={"deployment": arm.setup.deployment, "network": NetworkKind.BRIDGE if shared else network}
    )
    client = bare.settings.client
    if client is not None and shared:
        client = client.model_copy(update={"network": NetworkKind.SHARED})
    settings = bare.settings.model_copy(update={"sut": sut, "client": client})
    return bare.model_copy(update={"name": arm.name, "levels": {"path": arm.name}, "settings": settings})


def _one_of(question: str, choices: tuple[str, ...], default: str) -> str:
    given = str(typer.prompt(f"{question} ({', '.join(choices)})", default=default, err=True)).strip()
    if given not in choices:
        raise StudyError(f"{given!r} is no answer", hint=did_you_mean(given, choices, kind="one of"))
    return given
