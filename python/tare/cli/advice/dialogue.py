"""The dialogue of `tare advise` without a study: four questions, a few for each planned arm, and where to save."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer
from ruamel.yaml import YAML

from tare.deployments import MACHINES, POD
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
from tare.one_line import plain
from tare.study.model import Arm, StorageSpec, Study, VmSpec
from tare.study.reading.load import loads
from tare.study.registry import Registry, installed
from tare.study.starter import starter
from tare.study.suggest import did_you_mean
from tare.study.values import NetworkKind

_YCSB: Mapping[str, Any] = {
    "name": "ycsb", "core_workload": "a", "records": 100_000, "threads": 8, "warmup_s": 10, "measure_s": 60
}  # fmt: skip

_PROTOCOL: Mapping[str, Any] = {"name": "interleave", "blocks": 24, "max_minutes": 240, "retries": 1, "seed": 1}

DEPLOYMENTS: Mapping[str, DeploymentName] = {
    "bare": "bare", "container": "container", "podman": "container", "pod": "pod", "vm": "vm",
    "vm-container": "vm-container",
}  # fmt: skip
"""Answer → deployment; `container` is Docker's."""
_NETWORKS = ("host", "bridge", "published-loopback", "published-address", "shared")
_MACHINE_NETWORKS = ("user", "tap")
_POD_NETWORKS = ("pod", "cluster-ip", "host")
_CLIENT_NETWORKS = ("host", "bridge")
_REACHED_FROM_BRIDGE = ("bridge", "published-address")
_STORAGE = ("bind", "layer", "volume", "tmpfs", "block", "nfs")
_INTERRUPTED = 130
T = TypeVar("T")


@dataclass(frozen=True)
class _Served:
    """How a study of the dialogue runs a database: recipe, settings, workload (`None`: that of `tare init`)."""

    image: str
    settings: Mapping[str, Any]
    workload: Mapping[str, Any] | None = None


SERVED: Mapping[str, _Served] = {
    # A virtual machine's disk shows another size to write ahead than a directory of the host.
    "mariadb": _Served("mariadb", {"innodb_buffer_pool_size": "256M", "innodb_log_write_ahead_size": 4096}),
    "mysql": _Served("mysql", {"innodb_buffer_pool_size": "256M"}),
    "postgresql": _Served("postgresql-15", {"shared_buffers": "256MB"}),
    "cassandra": _Served("cassandra-3.11", {"heap": "512M"}, _YCSB),
    "cassandra-5": _Served("cassandra-5.0", {"heap": "512M"}, _YCSB),
    "redis": _Served("redis-7", {}, _YCSB),
    "valkey": _Served("valkey-8", {}, _YCSB),
    "ferretdb": _Served("ferretdb-2", {"shared_buffers": "256MB"}, _YCSB),
}
"""Databases for which the dialogue can write a study: tare has an image, and a workload that drives it."""


@dataclass(frozen=True)
class Asked:
    """The benchmark that the answers describe, and a study of it; `why_none`: why tare cannot run one."""

    benchmark: Benchmark
    study: Study | None
    why_none: str | None = None


def asked_study(benchmark: Benchmark, client_networks: Mapping[str, NetworkKind], registry: Registry) -> Asked:
    """Make a study of bare and the planned arms. `client_networks`: arm → its client's (default: host)."""
    if why := why_none(benchmark, registry):
        return Asked(benchmark, None, why)
    template = _template(benchmark, registry)
    bare = next(arm for arm in template.arms if arm.name == "bare")
    planned = [arm for arm in benchmark.arms if arm.setup != arm.baseline]
    made = [_made(bare, arm, client_networks.get(arm.name, NetworkKind.HOST)) for arm in planned]
    return Asked(benchmark, template.model_copy(update={"arms": (bare, *made), "baseline": "bare"}))


def why_none(benchmark: Benchmark, registry: Registry) -> str | None:
    """Why tare cannot run the benchmark that the answers describe; `None` where it can."""
    served = SERVED.get(benchmark.database or "")
    if served is None or served.image not in registry.recipes:
        return f"tare has no image of {benchmark.database!r}; it has images of {', '.join(SERVED)}"
    planned = [arm for arm in benchmark.arms if arm.setup != arm.baseline]
    if not planned:
        return "only the baseline is planned"
    return next((why for arm in planned if (why := _why_not(arm, registry))), None)


def _why_not(arm: PlannedArm, registry: Registry) -> str | None:
    deployment, kind = arm.setup.deployment, _kind(arm.setup)
    if arm.client_host != "same":
        return "tare runs the load generator on the database's host"
    if deployment not in registry.deployments:
        return f"tare cannot deploy a database as {deployment}"
    if kind not in registry.storages:
        return f"tare has no storage {kind}"
    usable = registry.storages[kind].deployments
    if usable is not None and deployment not in usable:
        return f"data on {kind} needs one of {', '.join(sorted(usable))}"
    return None


def _template(benchmark: Benchmark, registry: Registry) -> Study:
    """The study that `tare init` writes, with the database in question and one arm after the other."""
    served, yaml = SERVED[str(benchmark.database)], YAML()
    tree = yaml.load(starter(benchmark.name))
    tree["sut"].update(image=served.image, database=benchmark.database, settings=dict(served.settings))
    if served.workload is not None:
        tree["client"]["image"], tree["workload"] = "ycsb", dict(served.workload)
    # Arms may be virtual machines, and generators others than tare-load: these cannot take turns.
    tree["protocol"] = dict(_PROTOCOL)
    tree["sut"]["limits"]["cpus"], tree["client"]["limits"] = "0", {"cpus": "1"}
    del tree["scales"]
    stream = io.StringIO()
    yaml.dump(tree, stream)
    return loads(stream.getvalue(), registry, file="the study of the dialogue")


def _made(bare: Arm, arm: PlannedArm, client_network: NetworkKind) -> Arm:
    setup, sut, client = arm.setup, bare.settings.sut, bare.settings.client
    network = NetworkKind.HOST if setup.deployment == "bare" else _own(setup.network)
    shared = network is NetworkKind.SHARED
    sut = sut.model_copy(
        update={
            "deployment": setup.deployment,
            "engine": "podman" if setup.engine == "podman" else None,
            "network": NetworkKind.BRIDGE if shared else network,
            "storage": StorageSpec(kind=_kind(setup)),
            "vm": VmSpec() if setup.deployment in MACHINES else None,
        }
    )
    if client is not None:
        placed = {"deployment": setup.client, "network": NetworkKind.SHARED if shared else client_network}
        client = client.model_copy(update=placed)
    settings = bare.settings.model_copy(update={"sut": sut, "client": client})
    return bare.model_copy(update={"name": arm.name, "levels": {"path": arm.name}, "settings": settings})


def _kind(setup: Setup) -> str:
    """Kind of the storage, in the words of studies."""
    return "bind" if setup.storage in (None, "host") else setup.storage


def _own(path: str | None) -> NetworkKind:
    """Network of the database alone, from a path in the words of claims."""
    return NetworkKind((path or "host").removesuffix("-client-nat"))


def asked() -> Asked:
    """Ask for the benchmark, and make a study of its arms where tare can run them.

    After an invalid answer, the question is asked again, with the reason. Raises `StudyError` if the input ends
    before the last question.
    """
    with _answers():
        comparing = Comparing(_one_of("What is compared", tuple(Comparing), "systems"))
        database = _prompt("Database", "mariadb", _name)
        production = _one_of("Production is deployed", (*DEPLOYMENTS, "unknown"), "unknown")
        gap = _prompt("Expected difference in percent (0: unknown)", "0", _percent)
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
    """Ask where to save the smallest study, which overwrites nothing; `None`: do not save it."""
    with _answers():
        return _prompt(
            "Save the smallest study that would answer the open questions as (-: do not save)",
            suggestion,
            _new_file,
        )


def _arm(number: int, host: str) -> tuple[PlannedArm, NetworkKind]:
    """Ask for an arm. Returns it with the network of its load generator."""
    answer = _one_of(f"Arm {number}: the database is deployed", tuple(DEPLOYMENTS), "container")
    deployment, network, storage = DEPLOYMENTS[answer], "host", "host"
    if deployment in MACHINES:
        network = _one_of("  network", _MACHINE_NETWORKS, "user")
    elif deployment == POD:
        network = _one_of("  network", _POD_NETWORKS, "pod")
    elif deployment in DOCKERIZED:
        network = _one_of("  network", _NETWORKS, "host")
    if deployment == POD:
        storage = "bind"
    elif deployment in DOCKERIZED:
        storage = _one_of("  data on", _STORAGE, "bind")
    client, client_network = "bare", "host"
    if deployment != POD:
        client = _one_of("  the load generator is deployed", ("bare", "container"), "bare")
    if client == "container" and network in _REACHED_FROM_BRIDGE:
        client_network = _one_of("  its network", _CLIENT_NETWORKS, "bridge")
    contained = deployment in DOCKERIZED or client in DOCKERIZED
    setup = Setup.model_validate(
        {
            "deployment": deployment,
            "client": client,
            "network": path_in_words(network, client, client_network),
            "storage": storage,
            "engine": "podman" if answer == "podman" else engine_of(deployment, anything=contained),
            "runtime": None if answer in {"podman", POD} else runtime_of(deployment, anything=contained),
        }
    )
    words = [answer] if answer == "bare" else [answer, network]
    name = "-".join([*words, *(["client"] if client == "container" else []), str(number)])
    return PlannedArm(name, setup, BARE, host), NetworkKind(client_network)


@contextmanager
def _answers() -> Iterator[None]:
    """Let Ctrl-C end tare as elsewhere; raise an error for input that ends early, since answers are missing."""
    try:
        yield
    except typer.Abort as abort:
        typer.echo(err=True)  # end the line of the question
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise typer.Exit(_INTERRUPTED) from abort
        raise StudyError(
            "the input ended before the last question",
            hint="answer them all, or name a study: `tare advise STUDY`",
        ) from abort


def _prompt(question: str, default: str, understood: Callable[[str], T]) -> T:
    """Ask until `understood` accepts the answer; it raises `typer.BadParameter` for an invalid one."""
    answer: T = typer.prompt(
        question, default=default, err=True, value_proc=lambda given: understood(given.strip())
    )
    return answer


def _one_of(question: str, choices: tuple[str, ...], default: str) -> str:
    def understood(given: str) -> str:
        if given.lower() in choices:
            return given.lower()
        raise typer.BadParameter(f"{_shown(given)} is not an answer: {did_you_mean(given, choices, kind='one of')}")

    return _prompt(f"{question} ({', '.join(choices)})", default, understood)


def _name(given: str) -> str:
    """Accept any name of a database, also of one that tare cannot run."""
    if given and given.isascii() and given.replace("-", "").isalnum():
        return given.lower()
    raise typer.BadParameter(f"{_shown(given)} is not the name of a database, such as {', '.join(SERVED)} are")


def _percent(given: str) -> float:
    try:
        percent = float(given.removesuffix("%"))
    except ValueError:
        percent = math.nan
    if math.isfinite(percent) and percent >= 0:
        return percent / 100
    raise typer.BadParameter(f"{_shown(given)} is not a difference in percent, such as 20")


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
