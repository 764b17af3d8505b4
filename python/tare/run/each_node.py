"""A run of several nodes, as if it were one of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.run.record import RunRecord

_WHOLE = "sut"


def each_node(record: RunRecord, nodes: Mapping[str, Mapping[str, Any]]) -> Mapping[str, RunRecord]:
    """Node → the record with what was found of that node alone; itself where the SUT is a program and no server."""
    if not nodes:
        return {_WHOLE: record}
    return {name: _alone(record, node) for name, node in nodes.items()}


def _alone(record: RunRecord, node: Mapping[str, Any]) -> RunRecord:
    own = {
        "effective": node.get("effective"),
        "parity": {**record.parity, "sut": node.get("parity")},
        "path": node.get("path"),
    }
    return record.model_copy(update=own)
