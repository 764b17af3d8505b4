"""What a run takes beyond its phases because its programs are slow to start, for estimates of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tare.databases import Database
from tare.study.model import ArmSettings
from tare.workloads import Workload

_PROCESSES = 2
"""Of a client in a run: warm-up and measurement."""


def slow_starts(
    databases: Mapping[str, Database], workloads: Mapping[str, Workload[Any]]
) -> Callable[[ArmSettings], float]:
    """A function from an arm's settings to seconds; nodes start one after the other."""

    def of(settings: ArmSettings) -> float:
        server = databases[settings.sut.database].slow_start_s if settings.sut.database else 0.0
        client = workloads[settings.workload_name].slow_start_s
        return settings.sut.nodes * server + _PROCESSES * client

    return of
