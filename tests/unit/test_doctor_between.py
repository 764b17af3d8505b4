"""What `tare doctor --sites` says of the wire between two hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tare.doctor import Verdict
from tare.doctor.between import between_lines, offloads
from tare.record.between import Between, Offset, RoundTrip, Route, Sounding, Throughput
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.local import LocalHost

SIDE = Route(device="eth1", source="192.168.7.2", gateway=None, mtu=1500, speed_mbit=10_000, qdisc="mq")
OTHER = replace(SIDE, source="192.168.7.3")
GOOD = Between(
    sut="db",
    client="load",
    addresses={"db": "192.168.7.2", "load": "192.168.7.3"},
    one_boot=False,
    tare_bound_s=0.0005,
    before=Sounding(Offset(12.0, 0.00002, 5.0), 0.0, RoundTrip(0.00004, 0.00005, 200, 0)),
    throughput=Throughput(1.1e9, 1.2e9),
)
ETHTOOL = (
    b"Features for eth1:\ntcp-segmentation-offload: on\ngeneric-receive-offload: off [fixed]\nrx-checksumming: on\n"
)


def lines_of(between: Between = GOOD, sut: Route = SIDE, client: Route = OTHER) -> dict[str, tuple[Verdict, str]]:
    lines = between_lines(between, {"sut": sut, "client": client}, {"sut": "GRO on", "client": None})
    return {line.name: (line.verdict, line.found) for line in lines}


def test_a_good_wire_is_all_ok() -> None:
    rows = lines_of()
    assert {verdict for verdict, _ in rows.values()} == {Verdict.OK}
    assert rows["clocks"][1] == "known to ±20 µs between the hosts, ±500 µs to tare"
    assert rows["round trip"][1] == "40 µs at least, 50 µs in the median of 200, by UDP"
    assert rows["throughput"][1] == "8800 Mbit/s to the SUT, 9600 Mbit/s to the client, one TCP connection"
    assert rows["route of db"][1] == "eth1, MTU 1500, 10000 Mbit/s, qdisc mq"
    assert rows["offloads of load"][1] == "cannot be read: neither ethtool nor python3 reads them"


def test_what_spoils_results_is_a_warning() -> None:
    lossy = replace(GOOD.before, round_trip=RoundTrip(0.00004, 0.00005, 150, 50))
    assert lines_of(replace(GOOD, one_boot=True))["kernels"][0] is Verdict.WARNING
    assert lines_of(replace(GOOD, before=lossy))["round trip"] == (
        Verdict.WARNING, "40 µs at least, 50 µs in the median of 150, by UDP; 50 lost"
    )  # fmt: skip
    loose = replace(GOOD.before, clocks=Offset(12.0, 0.02, 5.0))
    assert lines_of(replace(GOOD, before=loose))["clocks"][0] is Verdict.WARNING
    assert lines_of(sut=replace(SIDE, gateway="192.168.7.1"))["route of db"][0] is Verdict.WARNING
    assert lines_of(sut=replace(SIDE, source="10.0.0.2"))["route of db"][0] is Verdict.WARNING
    assert lines_of(sut=replace(SIDE, mtu=1400))["route of db"][0] is Verdict.WARNING
    assert lines_of(sut=replace(SIDE, mtu=9000))["MTU"] == (Verdict.WARNING, "1500 and 9000")


def test_no_route_is_no_study() -> None:
    nowhere = Route(None, None, None, None, None, None)
    assert lines_of(client=nowhere)["route of load"][0] is Verdict.CANNOT


def test_offloads_are_read_where_ethtool_is() -> None:
    host = FakeHost(answers={("ethtool", "-k", "eth1"): Completed((), 0, ETHTOOL)})
    assert offloads(host, "eth1") == "TSO on, GRO off"
    assert offloads(FakeHost(), "eth1") is None
    assert offloads(host, None) is None


def test_without_ethtool_the_kernel_is_asked_by_python() -> None:
    printed = b"tcp-segmentation-offload: off\nlarge-receive-offload: off\n"
    absent = Completed((), 127)
    host = FakeHost(answers={("ethtool",): absent, ("python3", "-I", "-S", "-c"): Completed((), 0, printed)})
    assert offloads(host, "eth1") == "TSO off, LRO off"
    assert host.ran()[-1][-1] == "eth1"


def test_the_kernel_tells_what_loopback_offloads() -> None:
    class Here(FakeHost):
        def run(self, argv: Sequence[str], **options: Any) -> Completed:
            return Completed((), 127) if argv[0] == "ethtool" else LocalHost().run(argv, **options)

    lacking = offloads(Here(), "lo")
    assert lacking is not None
    assert {word.split()[0] for word in lacking.split(", ")} >= {"TSO", "GSO", "GRO"}
