"""The dialogue of `tare advise` without a study: four questions, a few for each planned arm, and where to save."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from tare.cli.asked_study import SERVED, Asked, asked_study
from tare.deployments import MACHINES
from tare.errors import StudyError
from tare.knowledge.benchmark import (
    BARE,
    DOCKERIZED,
    Benchmark,
    Comparing,
    PlannedArm,
    engine_of,
    path_in_words,
    runtime_of,
)
from tare.knowledge.claim import DeploymentName, Setup
from tare.knowledge.words import plain
from tare.study.registry import installed
from tare.study.suggest import did_you_mean
from tare.study.values import NetworkKind

DEPLOYMENTS: Mapping[str, DeploymentName] = {
    "bare": "bare", "container": "container", "vm": "vm", "vm-container": "vm-container"
}  # fmt: skip
_NETWORKS = ("host", "bridge", "published-loopback", "published-address", "shared")
_MACHINE_NETWORKS = ("user", "tap")
_CLIENT_NETWORKS = ("host", "bridge")
_REACHED_FROM_BRIDGE = ("bridge", "published-address")
_STORAGE = ("bind", "layer", "volume", "tmpfs", "block", "nfs")
_INTERRUPTED = 130
T = TypeVar("T")


def asked() -> Asked:
    """The benchmark as it was told, and a study of its arms where tare can run them.

    An answer that is none is told and asked for again. Raises `StudyError` where answers end before the questions.
    """
    with _answers():
        comparing = Comparing(_one_of("What is compared", tuple(Comparing), "systems"))
        database = _prompt("Database", "mariadb", _name)
        production = _one_of("Production is deployed", (*DEPLOYMENTS, "unknown"), "unknown")
        gap = _prompt("Expected difference in percent (0: not known)", "0", _percent)
        host = _one_of("The load generator runs on which host", ("same", "other"), "same")
        arms: list[PlannedArm] = []
        networks: dict[str, NetworkKind] = {}
        while not arms or typer.confirm("Another arm?", default=False, err=True):
            arm, network = _arm(len(arms) + 1, host)
            arms.append(arm)
            networks[arm.name] = network
    benchmark = Benchmark(
        name="my-benchmark",
        database=database,
        arms=tuple(arms),
        comparing=comparing,
        gap=gap or None,
        production=DEPLOYMENTS.get(production),
    )
    return asked_study(benchmark, networks, installed())


def asked_where(suggestion: str) -> Path | None:
    """Where the smallest study is to be written; `None`: nowhere. Not where something is already."""
    with _answers():
        return _prompt("Save the smallest study that would tell more as (-: nowhere)", suggestion, _new_file)


def _arm(number: int, host: str) -> tuple[PlannedArm, NetworkKind]:
    """An arm, and the network of its load generator."""
    deployment = _one_of(f"Arm {number}: the database is deployed", tuple(DEPLOYMENTS), "container")
    network, storage = "host", "host"
    if deployment in MACHINES:
        network = _one_of("  network", _MACHINE_NETWORKS, "user")
    elif deployment in DOCKERIZED:
        network = _one_of("  network", _NETWORKS, "host")
    if deployment in DOCKERIZED:
        storage = _one_of("  data on", _STORAGE, "bind")
    client, client_network = _one_of("  the load generator is deployed", ("bare", "container"), "bare"), "host"
    if client == "container" and network in _REACHED_FROM_BRIDGE:
        client_network = _one_of("  its network", _CLIENT_NETWORKS, "bridge")
    contained = deployment in DOCKERIZED or client in DOCKERIZED
    setup = Setup.model_validate(
        {
            "deployment": deployment,
            "client": client,
            "network": path_in_words(network, client, client_network),
            "storage": storage,
            "engine": engine_of(deployment, anything=contained),
            "runtime": runtime_of(deployment, anything=contained),
        }
    )
    words = [deployment] if deployment == "bare" else [deployment, network]
    name = "-".join([*words, *(["client"] if client == "container" else []), str(number)])
    return PlannedArm(name, setup, BARE, host), NetworkKind(client_network)


@contextmanager
def _answers() -> Iterator[None]:
    """Ctrl-C ends as it does elsewhere; an end of input is answers that are missing."""
    try:
        yield
    except typer.Abort as abort:
        typer.echo(err=True)  # the cursor stands behind a question
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise typer.Exit(_INTERRUPTED) from abort
        raise StudyError(
            "the answers ended before the questions did",
            hint="answer them all, or name a study: `tare advise STUDY`",
        ) from abort


def _prompt(question: str, default: str, understood: Callable[[str], T]) -> T:
    """Asked until the answer is one. `understood` raises `typer.BadParameter` for one that is none."""
    found: T = typer.prompt(question, default=default, err=True, value_proc=lambda given: understood(given.strip()))
    return found


def _one_of(question: str, choices: tuple[str, ...], default: str) -> str:
    def understood(given: str) -> str:
        if given.lower() in choices:
            return given.lower()
        raise typer.BadParameter(f"{_shown(given)} is no answer: {did_you_mean(given, choices, kind='one of')}")

    return _prompt(f"{question} ({', '.join(choices)})", default, understood)


def _name(given: str) -> str:
    """A database's; one that tare cannot run is a good answer too."""
    if given and given.isascii() and given.replace("-", "").isalnum():
        return given.lower()
    raise typer.BadParameter(f"{_shown(given)} is no name of a database, as {', '.join(SERVED)} are")


def _percent(given: str) -> float:
    try:
        found = float(given.removesuffix("%"))
    except ValueError:
        found = math.nan
    if math.isfinite(found) and found >= 0:
        return found / 100
    raise typer.BadParameter(f"{_shown(given)} is no difference in percent, as 20 is")


def _new_file(given: str) -> Path | None:
    if given == "-":
        return None
    path = Path(given)
    if path.is_symlink() or path.exists():
        raise typer.BadParameter(f"{_shown(given)} exists already")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {_shown(str(path.parent))}")
    return path


def _shown(given: str) -> str:
    return f"'{plain(given, 60)}'"
