"""The study of arms that somebody has told in the dialogue of `tare advise`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from tare.deployments import MACHINES
from tare.knowledge.benchmark import Benchmark, PlannedArm
from tare.knowledge.claim import Setup
from tare.study.machine_spec import VmSpec
from tare.study.model import Arm, StorageSpec, Study
from tare.study.reading.load import loads
from tare.study.registry import Registry
from tare.study.starter import starter
from tare.study.values import NetworkKind

_YCSB: Mapping[str, Any] = {
    "name": "ycsb", "core_workload": "a", "records": 100_000, "threads": 8, "warmup_s": 10, "measure_s": 60
}  # fmt: skip


@dataclass(frozen=True)
class _Served:
    """How a database is run: a recipe, its settings; `workload`: `None` for that of `tare init`."""

    image: str
    settings: Mapping[str, Any]
    workload: Mapping[str, Any] | None = None


SERVED: Mapping[str, _Served] = {
    # A virtual machine's disk shows another size to write ahead than a directory of the host.
    "mariadb": _Served("mariadb", {"innodb_buffer_pool_size": "256M", "innodb_log_write_ahead_size": 4096}),
    "postgresql": _Served("postgresql-15", {"shared_buffers": "256MB"}),
    "cassandra": _Served("cassandra-3.11", {"heap": "512M"}, _YCSB),
    "cassandra-5": _Served("cassandra-5.0", {"heap": "512M"}, _YCSB),
    "redis": _Served("redis-7", {}, _YCSB),
    "ferretdb": _Served("ferretdb-2", {"shared_buffers": "256MB"}, _YCSB),
}
"""Databases of which tare has an image."""


@dataclass(frozen=True)
class Asked:
    """What was told, and a study of it; where tare cannot run it, `why_none`."""

    benchmark: Benchmark
    study: Study | None
    why_none: str | None = None


def asked_study(benchmark: Benchmark, client_networks: Mapping[str, NetworkKind], registry: Registry) -> Asked:
    """A study of bare and the planned arms. `client_networks`: arm → that of its load generator (`host`)."""
    if why := why_none(benchmark, registry):
        return Asked(benchmark, None, why)
    template = _template(benchmark, registry)
    bare = next(arm for arm in template.arms if arm.name == "bare")
    planned = [arm for arm in benchmark.arms if arm.setup != arm.baseline]
    made = [_made(bare, arm, client_networks.get(arm.name, NetworkKind.HOST)) for arm in planned]
    return Asked(benchmark, template.model_copy(update={"arms": (bare, *made), "baseline": "bare"}))


def why_none(benchmark: Benchmark, registry: Registry) -> str | None:
    """Why tare cannot run a benchmark as it was told; `None` where it can."""
    served = SERVED.get(benchmark.database or "")
    if served is None or served.image not in registry.recipes:
        return f"tare has no image of {benchmark.database!r}, but of {', '.join(SERVED)}"
    planned = [arm for arm in benchmark.arms if arm.setup != arm.baseline]
    if not planned:
        return "nothing but the baseline is planned"
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
        return f"data on {kind} need one of {', '.join(sorted(usable))}"
    return None


def _template(benchmark: Benchmark, registry: Registry) -> Study:
    """The study that `tare init` writes, with the database in question."""
    served, yaml = SERVED[str(benchmark.database)], YAML()
    tree = yaml.load(starter(benchmark.name))
    tree["sut"].update(image=served.image, database=benchmark.database, settings=dict(served.settings))
    if served.workload is not None:
        tree["client"]["image"], tree["workload"] = "ycsb", dict(served.workload)
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
    """The storage's, in the study's words."""
    return "bind" if setup.storage in (None, "host") else setup.storage


def _own(path: str | None) -> NetworkKind:
    """The database's own network, of a path in the claims' words."""
    return NetworkKind((path or "host").removesuffix("-client-nat"))
