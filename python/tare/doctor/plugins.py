"""Plug-ins of other packages, each with its package and version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tare.databases.registry import DATABASES
from tare.deployments.registry import DEPLOYMENTS
from tare.doctor import Line, ok, warning
from tare.monitors.registry import MONITORS
from tare.plugins import Implementations
from tare.storage.registry import STORAGES
from tare.workloads.registry import WORKLOADS

KINDS: tuple[Implementations[Any], ...] = (DATABASES, WORKLOADS, MONITORS, DEPLOYMENTS, STORAGES)


def plugin_lines(kinds: tuple[Implementations[Any], ...] = KINDS) -> Iterator[Line]:
    """One line per plug-in; a refused one is a warning, as all others work."""
    for kind in kinds:
        for plugin in kind.plugins.values():
            if plugin.refusal is None:
                yield ok("plug-in", f"{plugin.kind} {plugin.name}: {plugin.package}")
            else:
                yield warning("plug-in", plugin.refusal, "update or uninstall that package")
