"""Put a Service's rules into the host's kernel, count them there, and remove them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tare.deployments.pod.services import (
    Service,
    chain,
    iptables_removal,
    iptables_rules,
    nft_rules,
    nft_table,
)
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host

_CALL_S, _LONG_S = 60.0, 600.0
_WAIT = ("-w", "30")
"""Seconds to wait for the lock that every iptables call takes."""
PROXIES = ("iptables", "nftables")


@dataclass(frozen=True)
class InForce:
    """Rules that the kernel holds. `by`: the program that reports them, with its version."""

    by: str
    services: int
    rules: int


def put(host: Host, proxy: str, service: Service) -> InForce:
    """Load all rules at once and read them back. Raises `EnvironmentLacks` if the kernel or its programs cannot."""
    by = version_of(host, proxy)
    if proxy == "iptables":
        _run(host, ["iptables-restore", "--noflush", *_WAIT], "\n".join([*iptables_rules(service), ""]))
        saved = host.run(["iptables-save", "-t", "nat"], timeout_s=_LONG_S).text
        own = [line for line in saved.splitlines() if line.startswith(f"-A {chain(service.tag, '')}")]
        return InForce(
            by, sum(f"-j {chain(service.tag, 'SVC-')}" in line and " -d " in line for line in own), len(own)
        )
    _run(host, ["nft", "-f", "-"], "\n".join([*nft_rules(service), ""]))
    listed = host.run(["nft", "--json", "list", "table", "ip", nft_table(service.tag)], timeout_s=_LONG_S).text
    return _nft_in_force(by, listed)


def _nft_in_force(by: str, listed: str) -> InForce:
    try:
        items = json.loads(listed)["nftables"]
        places = next(item["map"] for item in items if item.get("map", {}).get("name") == "service-ips")
    except (ValueError, KeyError, StopIteration) as error:
        raise RunFailed("nft does not list the rules that it just accepted: see nft --json list tables") from error
    return InForce(by, len(places.get("elem", [])), sum("rule" in item for item in items))


def drop(host: Host, proxy: str, tag: str) -> bool:
    """Remove the rules of a tag; return whether there were any. Raises `RunFailed` if they cannot be removed."""
    if proxy == "nftables":
        table = ["nft", "delete", "table", "ip", nft_table(tag)]
        # nft reads whole tables even to list their names: 16 s with a thousand Services on a busy machine.
        there = host.run(["nft", "list", "tables", "ip"], timeout_s=_LONG_S).text
        if f"table ip {nft_table(tag)}\n" not in f"{there}\n":
            return False
        host.run(table, timeout_s=_LONG_S)
        return True
    saved = "".join(host.run(["iptables-save", "-t", table], timeout_s=_LONG_S).text for table in ("filter", "nat"))
    if f":{chain(tag, '')}" not in saved:
        return False
    words = "\n".join([*iptables_removal(tag, saved), ""])
    host.run(["iptables-restore", "--noflush", *_WAIT], timeout_s=_LONG_S, stdin=words.encode())
    return True


def version_of(host: Host, proxy: str) -> str:
    """Version as the program prints it; iptables adds whether it is the legacy variant.

    Raises `EnvironmentLacks`.
    """
    program = "iptables" if proxy == "iptables" else "nft"
    try:
        return host.run([program, "--version"], timeout_s=_CALL_S).text.strip()
    except RunFailed as error:
        raise EnvironmentLacks(
            f"rules as kube-proxy's mode {proxy} writes them need {program}, which is missing",
            hint=f"apt-get install {proxy}",
        ) from error


def _run(host: Host, argv: list[str], words: str) -> None:
    done = host.run(argv, timeout_s=_LONG_S, stdin=words.encode(), check=False)
    if done.code != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.code}"]
        raise EnvironmentLacks(
            f"the rules of a Service are refused by {argv[0]}: {lines[0]}",
            hint="the kernel needs NAT, conntrack, marks and comments of netfilter; try the other `pod.proxy`",
        )
