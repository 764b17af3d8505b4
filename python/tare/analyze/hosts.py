"""Hosts of a run other than that of the SUT or of its first node, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.analyze.numbers import number_at
from tare.record.run_record import RunRecord
from tare.store.files import raw_name

TRACE = "monitors/probe/trace"
"""Path of the SUT host's recording among a run's raw files."""
_CLIENT = "client"


@dataclass(frozen=True)
class OtherHost:
    """A further host. `of`: `client` or the name of a node. `ahead_s`: its clock minus the run's."""

    of: str
    name: str
    ahead_s: float

    @property
    def trace(self) -> str:
        """Path of the host's recording among the run's raw files. Raises `StoreError` for a name that leads out."""
        return raw_name(f"monitors/{self.of}-host/trace")


def other_hosts(record: RunRecord) -> tuple[OtherHost, ...]:
    """Hosts of further nodes, then the client's; empty if one host had all roles."""
    between, hosts = record.between or {}, list[OtherHost]()
    ahead_s = {
        link["asks"]: number_at(link, ("before", "clocks", "offset_s"))
        for link in between.get("links") or ()
        if link["answers"] == between.get("sut")
    }
    for of, node in list((record.nodes or {}).items())[1:]:
        if (ahead := ahead_s.get(node.on)) is not None:
            hosts.append(OtherHost(of, str(node.on), ahead))
    offset_s = number_at(between, ("before", "clocks", "offset_s"))
    if offset_s is not None:
        hosts.append(OtherHost(_CLIENT, str(between.get("client", _CLIENT)), offset_s))
    return tuple(hosts)


def named_hosts(record: RunRecord) -> Mapping[str, str]:
    """Side or node → its host; empty if one host had all roles."""
    between: Mapping[str, Any] = record.between or {}
    if not between.get("sut"):
        return {}
    nodes = {name: node.on for name, node in (record.nodes or {}).items() if node.on}
    return {**(nodes or {"sut": str(between["sut"])}), _CLIENT: str(between.get("client"))}
