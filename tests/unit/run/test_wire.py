"""What the kernel's counters tell of a wire, and the program that sounds it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tare.errors import RunFailed
from tare.record.between import Route
from tare.run.between.by_program import SOUNDER, sounder_of
from tare.run.between.sounder import ahead_ns
from tare.run.between.wire import counters, growth, route_to, tcp_counters
from tare.run.clock import SystemClock
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs \
RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 96 65 18 11 10 54321 65432 7 0 28 0
"""


def test_segments_sent_and_sent_again_are_read_by_name() -> None:
    assert tcp_counters(SNMP) == {"tcp_segments_sent": 65432, "tcp_segments_retransmitted": 7}


def test_where_tcp_does_not_tell_nothing_is_counted() -> None:
    assert tcp_counters("Udp: a\nUdp: 1\n") == {"tcp_segments_sent": None, "tcp_segments_retransmitted": None}


def test_counters_of_a_host_are_its_interfaces_and_its_namespaces() -> None:
    host = FakeHost(files={"/sys/class/net/eth0/statistics/tx_packets": b"12\n", "/proc/7/net/snmp": SNMP.encode()})
    seen = counters(host, "eth0", 7)
    assert (seen["tx_packets"], seen["rx_packets"], seen["tcp_segments_retransmitted"]) == (12, None, 7)


def test_what_began_anew_has_no_growth() -> None:
    assert growth({"a": 5, "b": 9, "c": None}, {"a": 8, "b": 1, "c": 4}) == {"a": 3, "b": None, "c": None}


def test_a_side_is_the_kernels_own_choice_of_route() -> None:
    route = b"10.213.8.3 via 10.0.0.1 dev wire0 src 10.213.8.2 uid 0 \\    cache \n"
    link = b"3: wire0@if6: <UP> mtu 1500 qdisc tbf master x state UP mode DEFAULT group default qlen 1000\n"
    host = FakeHost(
        answers={
            ("ip", "-o", "route", "get", "10.213.8.3"): Completed((), 0, route),
            ("ip", "-o", "link", "show", "dev", "wire0"): Completed((), 0, link),
        },
        files={"/sys/class/net/wire0/mtu": b"1500\n", "/sys/class/net/wire0/speed": b"-1\n"},
    )
    assert route_to(host, "10.213.8.3") == Route("wire0", "10.213.8.2", "10.0.0.1", 1500, None, "tbf")


def test_without_a_route_a_side_is_unknown() -> None:
    unreachable = Completed((), 2, b"", b"RTNETLINK answers: Network is unreachable\n")
    assert route_to(FakeHost(answers={("ip",): unreachable}), "10.9.9.9").device is None


def test_a_host_without_an_agent_sounds_by_a_program_and_leaves_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    local = sounder_of(LocalHost(), ledger, f"{tmp_path}/work", SystemClock())
    with local.echo("127.0.0.1") as port:
        assert len(ledger.entries()) == 2
        assert len(local.sound("127.0.0.1", port)["exchanges"]) >= 20
        assert local.fill("127.0.0.1", port, 0.1)["to_bytes_per_s"] > 1e6
    assert ledger.entries() == ()
    assert list((tmp_path / "work").iterdir()) == []


def test_an_address_that_is_not_this_hosts_is_named(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    local = sounder_of(LocalHost(), ledger, f"{tmp_path}/work", SystemClock())
    with pytest.raises(RunFailed, match=r"cannot listen at 192\.0\.2\.1 on local"), local.echo("192.0.2.1"):
        pass
    assert ledger.entries() == ()


def test_the_sounder_answers_over_loopback() -> None:
    argv = [sys.executable, "-I", "-S", str(SOUNDER)]
    with subprocess.Popen([*argv, "serve", "127.0.0.1", "30"], stdout=subprocess.PIPE) as serving:
        try:
            assert serving.stdout is not None
            port = serving.stdout.readline().decode().strip()
            words = ["127.0.0.1", port]
            done = subprocess.run([*argv, "ask", *words], capture_output=True, check=True, timeout=60)
            filled = subprocess.run([*argv, "fill", *words, "0.1"], capture_output=True, check=True, timeout=60)
        finally:
            serving.kill()
    seen = json.loads(done.stdout)
    assert 20 <= len(seen["exchanges"]) <= 100
    assert seen["lost"] == 0
    assert all(sent <= received <= replied <= returned for sent, received, replied, returned in seen["exchanges"])
    assert abs(seen["own_ahead_ns"] - ahead_ns()) < 1_000_000_000
    rates = json.loads(filled.stdout)
    assert min(rates["to_bytes_per_s"], rates["from_bytes_per_s"]) > 1e6
