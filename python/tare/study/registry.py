"""The names that a study may use, as one value, so that a study can be read without the plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.databases import Database, Secrets, ServerPlan
from tare.deployments import Endpoint
from tare.plugins import FAKE
from tare.study.model import Scalar
from tare.workloads import Parameters, Target, Workload

SettingsCheck = Callable[[Mapping[str, Scalar]], object]
"""Raises `StudyError` for settings that a database does not accept."""
TargetCheck = Callable[[Parameters, str], object]
"""Raises `StudyError` for a database that a workload cannot drive with these parameters."""

RecipeFiles = Callable[[Path], Iterable[Path]]
"""Raises `StudyError` for a recipe that is wrong, and `OSError` for a file that cannot be read."""


@dataclass(frozen=True)
class Usable:
    """What a storage can be combined with: `deployments` (`None`: all), and the keys that it uses.

    `by_engine`: an engine has to make the storage.
    """

    deployments: frozenset[str] | None
    options: frozenset[str]
    by_engine: bool = False


@dataclass(frozen=True)
class Registry:
    """Names known to the plug-ins, and the properties that reading a study needs.

    `databases`: name → check of the settings that a study gives. `deployments`: name → whether its tasks can have a
    network namespace of their own. `workloads`: name → model of its parameters. `recipes`: images that can be named
    without a prefix. `clusters`: databases that can form a cluster. `programs`: workloads that need no database, as
    they are themselves the SUT. `log_…`, `ipv6_…`, `socket_…`, `tls_…`: databases and workloads that can use each.
    `monitors`: all of them. `storages`: what each can be combined with. `drives`: workload that needs a database →
    check of that database. `refused`: kind and name of a plug-in → why. `files_of_recipe`: recipe → the files of
    its image.
    """

    databases: Mapping[str, SettingsCheck]
    workloads: Mapping[str, type[Parameters]]
    deployments: Mapping[str, bool]
    protocols: frozenset[str]
    recipes: frozenset[str]
    clusters: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()
    log_servers: frozenset[str] = frozenset()
    ipv6_servers: frozenset[str] = frozenset()
    socket_servers: frozenset[str] = frozenset()
    socket_clients: frozenset[str] = frozenset()
    tls_servers: frozenset[str] = frozenset()
    tls_clients: frozenset[str] = frozenset()
    monitors: frozenset[str] = frozenset()
    storages: Mapping[str, Usable] = field(default_factory=lambda: {"bind": Usable(None, frozenset())})
    drives: Mapping[str, TargetCheck] = field(default_factory=dict)
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files_of_recipe: RecipeFiles = lambda recipe: (recipe,)


def installed() -> Registry:
    """Return the names of this installation, third-party plug-ins included."""
    return _registry(plugins=True)


def built_in() -> Registry:
    """Return the names shipped with tare: the same on every machine, as the JSON Schema requires."""
    return _registry(plugins=False)


def _registry(*, plugins: bool) -> Registry:
    # Imported here, as plug-ins may import the study's words.
    from tare.databases.abilities import CLUSTERS, IPV6, LOG_FILES, SOCKETS
    from tare.databases.abilities import TLS as TLS_DATABASES
    from tare.databases.registry import DATABASES
    from tare.deployments.registry import DEPLOYMENTS
    from tare.monitors.registry import MONITORS
    from tare.protocols.registry import IMPORTED, PROTOCOLS
    from tare.requirements.engines import ENGINE
    from tare.storage.registry import STORAGES
    from tare.study.catalogue import recipes
    from tare.workloads.registry import SOCKET, WORKLOADS
    from tare.workloads.registry import TLS as TLS_WORKLOADS

    databases = DATABASES if plugins else DATABASES.built_in
    workloads = WORKLOADS if plugins else WORKLOADS.built_in
    deployments = DEPLOYMENTS if plugins else DEPLOYMENTS.built_in
    monitors = MONITORS if plugins else MONITORS.built_in
    storages = STORAGES if plugins else STORAGES.built_in
    kinds = (DATABASES, WORKLOADS, DEPLOYMENTS, MONITORS, STORAGES) if plugins else ()
    refused = {
        (kind.kind, name): plugin.refusal
        for kind in kinds
        for name, plugin in kind.plugins.items()
        if plugin.refusal is not None
    }
    return Registry(
        databases={name: _settings_check(database) for name, database in databases.items() if name != FAKE},
        workloads={name: each.parameters for name, each in workloads.items() if not name.startswith(FAKE)},
        deployments={
            name: deployment.isolates_network
            for name, deployment in deployments.items()
            if not name.startswith(FAKE)
        },
        protocols=frozenset(PROTOCOLS) - {FAKE, IMPORTED},
        recipes=frozenset(recipes()),
        clusters=frozenset(CLUSTERS) - {FAKE},
        programs=frozenset(name for name, each in workloads.items() if not each.needs_database),
        log_servers=LOG_FILES,
        ipv6_servers=IPV6,
        socket_servers=frozenset(SOCKETS),
        socket_clients=SOCKET,
        tls_servers=TLS_DATABASES,
        tls_clients=TLS_WORKLOADS,
        monitors=frozenset(monitors) - {FAKE},
        drives={name: _target_check(each) for name, each in workloads.items() if each.needs_database},
        storages={
            name: Usable(each.deployments, each.options, ENGINE in each.needs) for name, each in storages.items()
        },
        refused=refused,
        files_of_recipe=_files_of_recipe,
    )


def _files_of_recipe(recipe: Path) -> Iterable[Path]:
    from tare.images.recipe.file import files_of

    return files_of(recipe)


_SECRETS = Secrets(user="nobody", password="none")  # noqa: S106 - of a server that is never started


def _target_check(workload: Workload[Any]) -> TargetCheck:
    """Make a check by asking a workload for its commands, which starts nothing."""

    def check(parameters: Parameters, database: str) -> object:
        target = Target(database, Endpoint("127.0.0.1", 1), _SECRETS)
        loads = (workload.load,) if workload.dataset(parameters) else ()
        return tuple(command(parameters, target, "/run/tare") for command in (*loads, workload.measure))

    return check


def _settings_check(database: Database) -> SettingsCheck:
    """Make a check by asking a database for a command, which starts nothing."""

    def check(settings: Mapping[str, Scalar]) -> object:
        return database.serve(ServerPlan("/data", "/run/tare", "127.0.0.1", 1, settings, _SECRETS))

    return check
