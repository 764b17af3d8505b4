"""What each arm loads, as its workload tells it: which arms share a snapshot, and how many rows it has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tare.plan.estimate import DataSet
from tare.study.model import ArmSettings
from tare.workloads import Workload

_ROWS = (("tables", "table_size"), ("record_count",), ("records",), ("rows",))
"""Keys of a data set whose product is its number of rows."""
_BYTES = "bytes"
"""Key of a data set of plain files that says how large they are."""


def data_sets(workloads: Mapping[str, Workload[Any]]) -> Callable[[ArmSettings], DataSet]:
    """A function from an arm's settings to its data set, by the workload that will load it."""

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
