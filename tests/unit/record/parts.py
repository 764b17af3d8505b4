"""Records with other parts, which tests write as the JSON of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tare.record.between import Between, Offset, RoundTrip, Route, Sounding
from tare.record.measurement import Measurement
from tare.record.run_record import RunRecord


def with_parts(record: RunRecord, **parts: Any) -> RunRecord:
    """The record with these parts, given as a store has them: dicts and lists."""
    whole = record.model_dump(mode="json")
    return RunRecord.model_validate({**whole, **parts}, strict=False)


def measured(record: RunRecord) -> Measurement:
    """What the generator reported of a good run."""
    assert record.measurement is not None
    return record.measurement


def rate_of(record: RunRecord) -> float:
    """Throughput of a good run."""
    rate = measured(record).throughput_per_s
    assert rate is not None
    return rate


_trees: dict[int, tuple[object, Mapping[str, Any]]] = {}
"""Id of a part → it and its tree, for the parts converted last: rules ask for each part of each run many times."""
_MOST_TREES = 4096


def as_tree(part: Any) -> Mapping[str, Any]:
    """A part of a record as a store has it; empty for none."""
    if part is None:
        return {}
    if id(part) not in _trees:
        if len(_trees) >= _MOST_TREES:
            _trees.clear()
        _trees[id(part)] = part, asdict(part)
    return _trees[id(part)][1]


def sounding(offset_s: float = 0.0) -> Sounding:
    """Of two hosts, one of whose clocks is ahead."""
    return Sounding(Offset(offset_s, 1e-5, 0.0), 0.0, RoundTrip(4e-5, 5e-5, 200, 0))


def route(**facts: Any) -> Route:
    """A way to another host."""
    return Route(**{**dict.fromkeys(("device", "source", "gateway", "mtu", "speed_mbit", "qdisc")), **facts})


def between(sut: str = "a", client: str = "c", **more: Any) -> Between:
    """Of a run between two hosts."""
    own = {"addresses": {}, "one_boot": False, "tare_bound_s": 1e-5, "before": sounding()}
    return Between(**{"sut": sut, "client": client, **own, **more})


def received_by(hosts: Between, side: str) -> int:
    """Packets that the interface of a side's host received in the measure phase."""
    seen = hosts.route_of(side)
    assert seen is not None
    assert seen.counters is not None
    return seen.counters["rx_packets"] or 0
