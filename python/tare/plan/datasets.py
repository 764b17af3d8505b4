"""The data set of each arm: which arms share it, its size, and whether it fits into a duet's memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tare.errors import StudyError
from tare.plan.estimate import DataSet
from tare.plan.model import Plan
from tare.study.model import ArmSettings
from tare.study.protocol_spec import DuetSpec
from tare.study.values import size_bytes
from tare.workloads import Workload

_ROWS = (("tables", "table_size"), ("record_count",), ("records",), ("rows",))
"""Keys of a data set whose product is its number of rows."""
_BYTES = "bytes"
"""Key of a data set of plain files: their size in bytes."""


def data_sets(workloads: Mapping[str, Workload[Any]]) -> Callable[[ArmSettings], DataSet]:
    """Return a function from an arm's settings to its data set, which asks the workload that will load it."""

    def of(settings: ArmSettings) -> DataSet:
        workload = workloads[settings.workload_name]
        parameters = workload.parameters.model_validate_json(json.dumps(dict(settings.workload)))
        loaded = workload.dataset(parameters)
        sut = settings.sut
        parts = [sut.image, sut.database, sut.nodes, dict(sut.settings), settings.workload_name, dict(loaded)]
        key = json.dumps(parts, sort_keys=True)
        if not workloads[settings.workload_name].needs_database:
            return DataSet(key=key, rows=None, file_bytes=int(loaded.get(_BYTES, 0)))
        return DataSet(key=key, rows=_rows(loaded), nodes=sut.nodes, replicas=parameters.replicas or 1)

    return of


def _rows(loaded: Mapping[str, str | int]) -> int | None:
    for keys in _ROWS:
        counts = [loaded[key] for key in keys if key in loaded]
        if len(counts) == len(keys):
            return prod(int(count) for count in counts)
    return None


def refuse_io_bound(plan: Plan, data_set: Callable[[ArmSettings], DataSet]) -> None:
    """Raise `StudyError` if an arm of a duet may use less memory than its data need, as far as both are known."""
    if not isinstance(plan.study.protocol, DuetSpec):
        return
    for arm in plan.study.arms:
        limit, size = arm.settings.sut.limits.memory, data_set(arm.settings).size_bytes
        if limit is not None and size is not None and size_bytes(limit) < size:
            raise StudyError(
                f"study {plan.study.name}: a duet does not suit I/O-bound work: arm {arm.name!r} may use "
                f"{size_bytes(limit) / 2**20:.0f} MiB of memory, and its data take about {size / 2**20:.0f} MiB",
                hint="raise sut.limits.memory, load less data, or use `interleave`",
            )
