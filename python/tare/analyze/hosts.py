"""Hosts of a run other than that of the SUT or of its first node, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    if record.between is None:
        return ()
    ahead_s = record.between.ahead_s
    nodes = [(of, node.on) for of, node in list((record.nodes or {}).items())[1:]]
    return tuple(
        OtherHost(of, name, ahead_s[name])
        for of, name in (*nodes, (_CLIENT, record.between.client))
        if name is not None and name in ahead_s
    )


def named_hosts(record: RunRecord) -> Mapping[str, str]:
    """Side or node → its host; empty if one host had all roles."""
    if record.between is None:
        return {}
    nodes = {name: node.on for name, node in (record.nodes or {}).items() if node.on}
    return {**(nodes or {"sut": record.between.sut}), _CLIENT: record.between.client}
