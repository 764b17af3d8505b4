"""What a packet on the host's loopback device meets of netfilter: connection tracking and rules of the nat table.

An installed container engine registers both, and then programs outside of every container pay for them too.
Sources: the kernel's net/netfilter/nf_conntrack_proto.c (hooks are registered in a network namespace by the first
rule that needs them), nft(8), libnftables-json(5), iptables-save(8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.errors import HostSilent, TimedOut
from tare.sites import Host
from tare.sites.reading import answer, number

_CONNTRACK = "/proc/sys/net/netfilter"
_TABLE, _RULE = re.compile(r"^\*(\S+)"), re.compile(r"^-A (\S+) ?(.*)")
_NAT_CHAINS = {"OUTPUT": "output", "PREROUTING": "prerouting"}
_ASKS_CONNTRACK = re.compile(r"\bctstate\b|\bconntrack\b|-m state\b|-j (?:MASQUERADE|DNAT|SNAT|REDIRECT)\b")
_FAMILIES = ("ip", "inet")
"""Families of nft whose rules IPv4 packets meet."""


@dataclass(frozen=True)
class Rules:
    """`output`, `prerouting`: rules at hooks of nat. `tracks`: a rule needs connection tracking."""

    output: int
    prerouting: int
    total: int
    tracks: bool


@dataclass(frozen=True)
class Netfilter:
    """What packets meet; `None` where only root may read it. `conntrack`: whether connections are tracked."""

    conntrack: bool | None = None
    rules: Rules | None = None


def netfilter_of(host: Host) -> Netfilter:
    """Read what packets on a host's loopback device meet.

    Without connection tracking in the kernel, there is no nat table either, and no program is asked, since listing
    the rules could load a module.
    """
    if number(host, f"{_CONNTRACK}/nf_conntrack_max") is None:
        nothing = host.read("/proc/net/tcp") is not None
        return Netfilter(conntrack=False, rules=Rules(0, 0, 0, tracks=False)) if nothing else Netfilter()
    rules = _rules(host)
    if rules is not None and (rules.tracks or rules.output or rules.prerouting):
        return Netfilter(conntrack=True, rules=rules)
    tracked = number(host, f"{_CONNTRACK}/nf_conntrack_count")
    return Netfilter(conntrack=True if tracked else None if rules is None else False, rules=rules)


def _rules(host: Host) -> Rules | None:
    """Rules of both kinds of tables; `None` if neither can be listed."""
    try:
        nft, legacy = answer(host, ["nft", "-j", "list", "ruleset"]), answer(host, ["iptables-legacy-save"])
        saved = "" if nft else answer(host, ["iptables-save"])
    except HostSilent:
        raise
    except TimedOut:
        return None
    seen = [*([parse_nft(nft)] if nft else []), *(parse_saved(each) for each in (legacy, saved) if each)]
    if not seen:
        return None
    return Rules(
        sum(each.output for each in seen),
        sum(each.prerouting for each in seen),
        sum(each.total for each in seen),
        tracks=any(each.tracks for each in seen),
    )


def parse_saved(text: str) -> Rules:
    """Parse the output of iptables-save."""
    table, hooks, total, tracks = "", {"output": 0, "prerouting": 0}, 0, False
    for line in text.splitlines():
        if found := _TABLE.match(line):
            table = found[1]
        elif found := _RULE.match(line):
            total += 1
            tracks = tracks or _ASKS_CONNTRACK.search(found[2]) is not None
            if table == "nat" and found[1] in _NAT_CHAINS:
                hooks[_NAT_CHAINS[found[1]]] += 1
    return Rules(hooks["output"], hooks["prerouting"], total, tracks)


def parse_nft(text: str) -> Rules:
    """Parse the output of `nft -j list ruleset`; raises nothing for objects that it does not know."""
    try:
        objects = json.loads(text)["nftables"]
    except (ValueError, KeyError, TypeError):
        return Rules(0, 0, 0, tracks=False)
    hooks = {
        (chain["family"], chain["table"], chain["name"]): chain["hook"]
        for chain in _of("chain", objects)
        if chain.get("type") == "nat" and "hook" in chain
    }
    rules = [rule for rule in _of("rule", objects) if rule.get("family") in _FAMILIES]
    at = [hooks.get((rule["family"], rule["table"], rule["chain"])) for rule in rules]
    needs = any(_needs_conntrack(rule.get("expr")) for rule in rules)
    return Rules(at.count("output"), at.count("prerouting"), len(rules), needs)


def _of(kind: str, objects: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    return (each[kind] for each in objects if isinstance(each, Mapping) and kind in each)


def _needs_conntrack(expression: Any) -> bool:
    """Whether a rule matches on a connection's state or rewrites an address."""
    if isinstance(expression, list):
        return any(map(_needs_conntrack, expression))
    if not isinstance(expression, Mapping):
        return False
    if {"ct", "dnat", "snat", "masquerade", "redirect"} & expression.keys():
        return True
    xt = expression.get("xt")
    if isinstance(xt, Mapping) and xt.get("name") in {"conntrack", "state", "MASQUERADE", "DNAT", "SNAT"}:
        return True
    return any(map(_needs_conntrack, expression.values()))
