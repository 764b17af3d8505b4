"""The record is a type: what still is a tree without one is listed, and the list only gets shorter."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.deployments import Endpoint
from tare.record.measurement import Measurement, as_stored
from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import RunRecord

UNTYPED = {
    "between", "chronicle", "client_engine", "client_host", "engine", "host", "images", "monitors",
    "nodes", "pilot", "rotation", "settings", "snapshot",
}  # fmt: skip
"""Parts of a record that cross the stages as `Mapping[str, Any]`."""


def test_no_part_of_a_record_loses_its_type() -> None:
    untyped = {name for name, kind in RunRecord.__annotations__.items() if "Any" in str(kind)}
    assert untyped == UNTYPED


def read(tree: dict[str, Any]) -> RunRecord:
    return RunRecord.model_validate_json(json.dumps(tree))


def test_keys_that_a_newer_tare_adds_do_not_make_a_record_unreadable() -> None:
    record = synthetic.record(1, "bridge", 1900.0)
    tree = record.model_dump(mode="json")
    newer = {**tree, "later": 1, "usage": {**tree["usage"], "later": 1}, "path": {**tree["path"], "later": {}}}
    assert read(newer) == read(tree) == record


def test_a_path_of_an_earlier_tare_is_read() -> None:
    tree = synthetic.record(1, "bridge", 1900.0).model_dump(mode="json")
    tree["path"] = {
        "client_dialled": {"address": "127.0.0.1", "port": 31172}, "client_namespace": "4026531833",
        "connections": 2, "hop": "loopback", "proxy": None, "server_namespace": "4026531833",
        "server_sees": {"address": "127.0.0.1", "port": 40430},
    }  # fmt: skip
    dialled, sees = Endpoint("127.0.0.1", 31172), Endpoint("127.0.0.1", 40430)
    assert read(tree).path == NetworkPath(
        Hop.LOOPBACK, "4026531833", "4026531833", dialled, sees, proxy=None, connections=2
    )


def test_a_measurement_of_a_plug_in_is_one_that_a_store_can_give_back() -> None:
    of_plugin: Any = Measurement
    assert as_stored(of_plugin(operations=3.0)) == Measurement(operations=3)
    for wrong in (of_plugin(operations=2.5), of_plugin(throughput_per_s=math.nan), of_plugin(unit=None)):
        with pytest.raises(ValueError, match=r"Measurement|JSON"):
            as_stored(wrong)


def test_a_sut_that_nobody_looked_at_again_differs_from_one_that_could_not_be_read() -> None:
    tree = synthetic.record(1, "bridge", 1900.0).model_dump(mode="json")
    assert "sut_after" not in tree["parity"]
    unread = {**tree, "parity": {**tree["parity"], "sut_after": None}}
    for written, lacks in ((tree, False), (unread, True)):
        record = read(written)
        assert record.parity.lacks_after is lacks
        assert record.model_dump(mode="json")["parity"] == written["parity"]
