"""The record is a type: what still is a tree without one is listed, and the list only gets shorter."""

from __future__ import annotations

from tare.record.run_record import RunRecord

UNTYPED = {
    "between", "chronicle", "client_engine", "client_host", "engine", "host", "images", "measurement", "monitors",
    "nodes", "parity", "path", "pilot", "rotation", "settings", "snapshot",
}  # fmt: skip
"""Parts of a record that cross the stages as `Mapping[str, Any]`."""


def test_no_part_of_a_record_loses_its_type() -> None:
    untyped = {name for name, kind in RunRecord.__annotations__.items() if "Any" in str(kind)}
    assert untyped == UNTYPED
