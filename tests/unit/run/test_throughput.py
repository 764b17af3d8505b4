"""What a wire carries is measured once a session, before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tare.record.between import Throughput
from tare.run.between.clocks import SiteClock
from tare.run.between.sounding import Wire
from tare.run.clock import SystemClock
from tare.sites.abilities import NetworkProbe
from tare.sites.fake import FakeHost
from tare.sites.sqlite_ledger import SqliteLedger


class Sounding(FakeHost):
    """A host that measures the wire by itself, and keeps whom it was told to ask."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.filled: list[str] = []
        self.answers_now = 0

    def network_probe(self) -> NetworkProbe:
        return self

    @contextmanager
    def echo(self, address: str) -> Iterator[int]:
        assert address == f"at-{self.name}"
        self.answers_now += 1
        yield 7
        self.answers_now -= 1

    def sound(self, address: str, port: int) -> Mapping[str, Any]:
        raise AssertionError("no run has begun")

    def fill(self, address: str, port: int, seconds: float) -> Mapping[str, float]:
        assert port == 7
        self.filled.append(address)
        return {"to_bytes_per_s": 1e9, "from_bytes_per_s": 2e9}


def wire_of(client: Sounding, *nodes: Sounding, tmp_path: Path) -> Wire:
    hosts = (client, *nodes)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    names = [host.name for host in hosts]
    return Wire(
        sut=nodes[0],
        client=client,
        addresses={name: f"at-{name}" for name in names},
        clock=SiteClock(SystemClock()),
        ledgers=dict.fromkeys(names, ledger),
        works=dict.fromkeys(names, "/work"),
        nodes=nodes if len(nodes) > 1 else (),
    )


def test_it_is_measured_once(tmp_path: Path) -> None:
    client, sut = Sounding("load"), Sounding("db")
    wire = wire_of(client, sut, tmp_path=tmp_path)
    wire.fill()
    wire.fill()
    assert wire.carried == {("load", "db"): Throughput(1e9, 2e9)}
    assert (client.filled, sut.answers_now) == (["at-db"], 0)


def test_of_a_cluster_between_every_two_hosts(tmp_path: Path) -> None:
    hosts = client, *nodes = [Sounding(name) for name in ("load", "one", "two", "three")]
    wire_of(client, *nodes, tmp_path=tmp_path).fill()
    assert {host.name: sorted(host.filled) for host in hosts} == {
        "load": ["at-one", "at-three", "at-two"],
        "one": [],
        "two": ["at-one"],
        "three": ["at-one", "at-two"],
    }
