"""The record is a type: what still is a tree without one is listed, and the list only gets shorter."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from tests.unit.analyze import synthetic

from tare.deployments import Endpoint
from tare.record.made_by import PodFacts
from tare.record.measurement import Measurement, as_stored
from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import RunRecord

UNTYPED = {"RunRecord": {"settings"}}
"""Type of a record → its parts that cross the stages as `Mapping[str, Any]`."""


def types_in(kind: Any) -> Iterator[type]:
    """Yield the classes of `record/` that a type is made of."""
    if isinstance(kind, type) and kind.__module__.startswith("tare.record."):
        yield kind
        for each in get_type_hints(kind).values():
            yield from types_in(each)
    for each in get_args(kind):
        yield from types_in(each)


def test_no_part_of_a_record_loses_its_type() -> None:
    untyped = {
        kind.__name__: {name for name, each in kind.__annotations__.items() if "Any" in str(each)}
        for kind in set(types_in(RunRecord))
    }
    assert {name: parts for name, parts in untyped.items() if parts} == UNTYPED


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


def test_what_a_monitor_of_a_plug_in_says_of_itself_stays() -> None:
    tree = synthetic.record(1, "bridge", 1900.0).model_dump(mode="json")
    tree["monitors"] = {"eye": {"samples": 3, "blinks": [1, 2]}, "ear": {"absent": "it is deaf"}}
    record = read(tree)
    assert record.monitors is not None
    assert (record.monitors["eye"].samples, record.monitors["ear"].absent) == (3, "it is deaf")
    assert record.model_dump(mode="json")["monitors"] == tree["monitors"]


def test_facts_of_a_pod_by_their_earlier_names_are_read() -> None:
    tree = synthetic.record(1, "bridge", 1900.0).model_dump(mode="json")
    earlier = {
        "held by the sandbox": "ipc",
        "kubelet's oom_score_adj": -997,
        "cpu manager": "none",
        "storage class": "x",
    }
    tree["parity"]["sut"] = {"pod": {**earlier, "qos": "burstable"}}
    seen = read(tree).parity.sut
    assert seen is not None
    assert seen.pod == PodFacts(
        "ipc", qos="burstable", kubelet_oom_score_adj=-997, cpu_manager="none", storage_class="x"
    )
