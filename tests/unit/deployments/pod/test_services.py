"""Texts of a Service's rules among few and many others: one way to the measured one, each other one to nobody."""

from __future__ import annotations

import ipaddress
import re

import pytest

from tare.deployments.pod.services import Service, cluster_ip_of, iptables_removal, iptables_rules, nft_rules

TAG = "0123456789ab"
BLOCK = ipaddress.IPv4Network("10.232.64.0/18")
PODS = ipaddress.IPv4Network("10.231.0.0/29")
OURS = "10.231.0.2:6379"
COUNTS = [1, 10, 1_000, 10_000]
SVC, SEP = f"TARE-{TAG}-SVC-00000", f"TARE-{TAG}-SEP-00000"


def service(of: int, node_port: int = 0) -> Service:
    return Service(TAG, cluster_ip_of(BLOCK, of), BLOCK, 6379, OURS, PODS, of, "10.231.0.1", node_port)


def table(name: str, of: int, node_port: int = 0) -> list[str]:
    lines = list(iptables_rules(service(of, node_port)))
    first = lines.index(f"*{name}")
    return lines[first : lines.index("COMMIT", first)]


def test_the_rules_of_one_service_are_these() -> None:
    """Kubernetes 1.34, pkg/proxy/iptables/proxier.go: their order, matches and targets."""
    comment, to = '-m comment --comment "tare/service-0"', "-d 10.232.64.1/32 -p tcp"
    own = [line for line in table("nat", 1) if "service-0" in line]
    assert own == [
        f"-A TARE-{TAG}-SERVICES {to} {comment} -m tcp --dport 6379 -j {SVC}",
        f"-A {SVC} ! -s 10.231.0.0/29 {to} {comment} -m tcp --dport 6379 -j TARE-{TAG}-MASQ",
        f"-A {SVC} {comment} -j {SEP}",
        f"-A {SEP} -s 10.231.0.2/32 {comment} -j TARE-{TAG}-MASQ",
        f"-A {SEP} -p tcp {comment} -m tcp -j DNAT --to-destination {OURS}",
    ]


def test_a_node_port_has_three_rules_more_and_one_address() -> None:
    more = [line for line in table("nat", 1, 30_080) if line not in table("nat", 1)]
    comment = '-m comment --comment "tare/service-0"'
    assert more == [
        f":TARE-{TAG}-EXT - [0:0]",
        f"-A TARE-{TAG}-PORTS -p tcp {comment} -m tcp --dport 30080 -j TARE-{TAG}-EXT",
        f"-A TARE-{TAG}-EXT {comment} -j TARE-{TAG}-MASQ",
        f"-A TARE-{TAG}-EXT -j {SVC}",
    ]
    last = [line for line in table("nat", 1, 30_080) if line.startswith(f"-A TARE-{TAG}-SERVICES")][-1]
    assert last.endswith(f"-d 10.231.0.1/32 -j TARE-{TAG}-PORTS")


@pytest.mark.parametrize("of", COUNTS)
def test_rules_of_iptables_grow_by_seven_lines_a_service_in_nat_alone(of: int) -> None:
    nat = table("nat", of)
    assert len(nat) == len(table("nat", 1)) + 7 * (of - 1)
    assert table("filter", of) == table("filter", 1)
    portals = [line for line in nat if re.search(r"-SERVICES -d \S+ -p tcp .* -j \S+-SVC-\d{5}$", line)]
    assert len({line.split()[3] for line in portals}) == of
    at = next(place for place, line in enumerate(portals) if f"-d {cluster_ip_of(BLOCK, of)}/32" in line)
    assert at == of // 2
    assert sum(OURS in line for line in nat) == 1
    assert all(ipaddress.IPv4Interface(line.split()[3]).ip in BLOCK for line in portals)
    chains = [line[1:].split()[0] for line in nat if line.startswith(":")]
    assert len(set(chains)) == len(chains)


@pytest.mark.parametrize("of", COUNTS)
def test_removal_takes_as_much_as_was_put(of: int) -> None:
    rules = list(iptables_rules(service(of, 30_080)))
    removal = list(iptables_removal(TAG, "\n".join(rules)))
    chains = {line[1:].split()[0] for line in rules if line.startswith(":")}
    assert {line[3:] for line in removal if line.startswith("-X ")} == chains
    hooked = [line[3:] for line in rules if line.startswith("-A ") and not line.startswith(f"-A TARE-{TAG}")]
    assert [line[3:] for line in removal if line.startswith("-D ")] == hooked


@pytest.mark.parametrize("of", COUNTS)
def test_nftables_hold_each_service_in_one_map(of: int) -> None:
    text = "\n".join(nft_rules(service(of)))
    (places,) = re.findall(r"map service-ips .*\n    elements = \{ (.*) \}", text)
    shown = places.split(", ")
    assert len(set(shown)) == of
    assert shown[of // 2] == f"{cluster_ip_of(BLOCK, of)} . tcp . 6379 : goto service-{of // 2:05}"
    (addresses,) = re.findall(r"set cluster-ips .*\n    elements = \{ (.*) \}", text)
    assert addresses.split(", ") == [place.split(" . ")[0] for place in shown]
    assert len(re.findall(r"^  chain (?:service|endpoint)-\d{5} \{$", text, re.MULTILINE)) == 2 * of
    assert text.count(f"dnat to {OURS}") == 1
    assert text.count("{") == text.count("}")
