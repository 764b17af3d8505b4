"""Netfilter on the loopback device: read from what nft and iptables-save really print."""

from __future__ import annotations

import json

import pytest

from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.netfilter import netfilter_of, parse_nft, parse_saved

DOCKER = """*filter
:FORWARD DROP [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A DOCKER -i docker0 -j RETURN
COMMIT
"""
CHAIN = {"family": "ip", "table": "nat", "name": "OUTPUT", "type": "nat", "hook": "output", "prio": -100}
NFT = json.dumps({
    "nftables": [
        {"metainfo": {"version": "1.0.6"}},
        {"chain": CHAIN},
        {"chain": {"family": "ip", "table": "nat", "name": "DOCKER"}},
        {"rule": {"family": "ip", "table": "nat", "chain": "OUTPUT", "expr": [{"jump": {"target": "DOCKER"}}]}},
        {"rule": {"family": "ip", "table": "nat", "chain": "DOCKER", "expr": [{"dnat": {"addr": "172.17.0.2"}}]}},
        {"rule": {"family": "ip6", "table": "filter", "chain": "INPUT", "expr": []}},
    ]
})  # fmt: skip
FILTER = json.dumps(
    {"nftables": [{"rule": {"family": "inet", "table": "f", "chain": "input", "expr": [{"drop": None}]}}]}
)
LOADED = {"/proc/sys/net/netfilter/nf_conntrack_max": b"262144\n"}


def facts(files: dict[str, bytes], nft: str = "", saved: str = "") -> list[bool | int | None]:
    host = FakeHost()
    host.files |= {"/proc/net/tcp": b"", **files}
    answers = {"nft": nft, "iptables-save": saved}

    def run(argv: list[str], **_: object) -> Completed:
        text = answers.get(argv[0], "")
        return Completed(tuple(argv), 0 if text else 127, text.encode())

    host.run = run  # type: ignore[method-assign, assignment]  # answers as these programs do
    seen = netfilter_of(host)
    counts = (
        (None, None, None) if seen.rules is None else (seen.rules.output, seen.rules.prerouting, seen.rules.total)
    )
    return [seen.conntrack, *counts]


def test_rules_of_an_engine_are_counted_at_the_hooks_that_the_hosts_own_programs_meet() -> None:
    seen = parse_saved(DOCKER)
    assert (seen.output, seen.prerouting, seen.total, seen.tracks) == (1, 1, 5, True)
    seen = parse_nft(NFT)
    assert (seen.output, seen.prerouting, seen.total, seen.tracks) == (1, 0, 2, True)
    assert parse_nft("no JSON").total == 0


@pytest.mark.parametrize(
    ("files", "nft", "saved", "expected"),
    [
        ({}, NFT, "", [False, 0, 0, 0]),  # nothing in the kernel tracks connections: nft is not even asked
        (LOADED, NFT, "", [True, 1, 0, 2]),
        (LOADED, "", DOCKER, [True, 1, 1, 5]),
        (LOADED, FILTER, "", [False, 0, 0, 1]),
        (LOADED, "", "", [None, None, None, None]),
        ({**LOADED, "/proc/sys/net/netfilter/nf_conntrack_count": b"7"}, "", "", [True, None, None, None]),
        ({**LOADED, "/proc/sys/net/netfilter/nf_conntrack_count": b"0"}, "", "", [None, None, None, None]),
    ],
)
def test_what_cannot_be_read_is_unknown_and_what_is_not_there_is_none(
    files: dict[str, bytes], nft: str, saved: str, expected: list[object]
) -> None:
    assert facts(files, nft, saved) == expected
