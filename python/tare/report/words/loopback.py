"""Whether a bare baseline pays for netfilter on the host's loopback device, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tare.plural import counted
from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord
from tare.study.model import Study
from tare.study.values import NetworkKind


def on_loopback(study: Study, records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield what netfilter does to connections of bare baselines in the host's network namespace.

    Nothing without such a baseline, or for records from before that was recorded.
    """
    baselines = {study.baseline_of(arm.name) for arm in study.arms}
    of_baseline = [record for record in records if record.outcome.ok and record.arm in baselines]
    bare = [record for record in of_baseline if _is_bare_on_host(record.settings.get("sut"))]
    seen = [host for host in (record.host for record in bare) if _was_looked_for(host)]
    if not seen:
        return
    known = [_what(hosts) for hosts in _alike(seen)]
    if len(known) > 1:
        yield f"Between runs of the bare baseline, netfilter on the host's loopback changed: {'; '.join(known)}."
        return
    host = seen[-1]
    if host.netfilter_conntrack is None:
        yield "Whether netfilter sees the bare baseline's connections is unknown: only root may read that."
    elif host.netfilter_conntrack or host.netfilter_nat_output:
        seen_by = f"Netfilter sees the bare baseline's connections on the host's loopback ({known[0]})"
        costs = "as on any machine with a container engine; a machine without one saves that"
        yield f"{seen_by}, {costs} (`sut.network: untracked` measures it)."
    else:
        yield "Netfilter does not see the bare baseline's connections on the host's loopback."


def _was_looked_for(host: HostFacts) -> bool:
    """Whether netfilter was seen, or could not be, as another user than root; older records have neither."""
    return host.netfilter_conntrack is not None or host.tare_is_root is False


def _is_bare_on_host(sut: Any) -> bool:
    return (
        isinstance(sut, Mapping)
        and sut.get("deployment") == "bare"
        and sut.get("network", NetworkKind.HOST) == NetworkKind.HOST
        and sut.get("database") is not None
    )


def _alike(hosts: Sequence[HostFacts]) -> Iterator[Sequence[HostFacts]]:
    """Group hosts by what every packet meets; the number of rules behind that follows the containers of the day."""
    groups: dict[tuple[object, ...], list[HostFacts]] = {}
    for host in hosts:
        met = (host.netfilter_conntrack, host.netfilter_nat_output, host.netfilter_nat_prerouting)
        groups.setdefault(met, []).append(host)
    yield from groups.values()


def _what(hosts: Sequence[HostFacts]) -> str:
    host = hosts[0]
    tracking = {True: "connection tracking", False: "no connection tracking", None: "connection tracking unknown"}
    output, prerouting = host.netfilter_nat_output, host.netfilter_nat_prerouting
    if output is None or prerouting is None:
        return f"{tracking[host.netfilter_conntrack]}, rules unknown"
    totals = [each.netfilter_rules for each in hosts if each.netfilter_rules is not None]
    of = ""
    if totals:
        least, most = min(totals), max(totals)
        of = f" of {counted(most, 'rule')}" if least == most else f" of {least} to {most} rules"
    rules = f"{output} and {prerouting}{of} in nat OUTPUT and PREROUTING"
    return f"{tracking[host.netfilter_conntrack]}, {rules}"
