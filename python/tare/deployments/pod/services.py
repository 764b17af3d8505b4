"""The netfilter rules of a Service as kube-proxy writes them, among the requested number of other Services.

Structure, matches, targets and their number are kube-proxy's (Kubernetes 1.34, pkg/proxy/iptables/proxier.go and
pkg/proxy/nftables/proxier.go). Names are tare's, so that the rules can stand beside those of a real kube-proxy and
be removed with their run. Every other Service has one endpoint to which nobody connects.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

MARK = "0x4000"
"""Mark of packets to masquerade (kube-proxy, --iptables-masquerade-bit)."""
_COMMENT = "-m comment --comment"
_FIRST = ipaddress.IPv4Address("10.255.0.1")
"""First of the endpoints to which nobody connects: each Service has its own."""


@dataclass(frozen=True)
class Service:
    """The measured Service. `cluster_ip`, `node_ip`: addresses that clients dial. `node_port`: 0 for none.

    `of`: number of all Services; their addresses lie in `block`, with the measured one in the middle. `pods`:
    network of the node's pods, whose traffic is not masqueraded.
    """

    tag: str
    cluster_ip: str
    block: ipaddress.IPv4Network
    port: int
    endpoint: str
    pods: ipaddress.IPv4Network
    of: int = 1
    node_ip: str = ""
    node_port: int = 0


@dataclass(frozen=True)
class One:
    """Any of the Services: its number, address, port and endpoint."""

    number: int
    address: str
    port: int
    endpoint: str
    node_port: int = 0


def every(service: Service) -> Iterator[One]:
    """All Services in the order of the rules.

    The measured one is in the middle, where a search from the top takes the average time.
    """
    middle = service.of // 2
    for number in range(service.of):
        if number == middle:
            yield One(number, service.cluster_ip, service.port, service.endpoint, service.node_port)
        else:
            yield One(number, str(service.block[number + 1]), 80, f"{_FIRST + number}:8080")


def cluster_ip_of(block: ipaddress.IPv4Network, of: int) -> str:
    """Address of the measured Service in a block."""
    return str(block[of // 2 + 1])


def chain(tag: str, name: str) -> str:
    """Name of a chain; at most 28 characters (include/uapi/linux/netfilter/x_tables.h, XT_EXTENSION_MAXNAMELEN)."""
    return f"TARE-{tag}-{name}"


def iptables_rules(service: Service) -> Iterator[str]:
    """Lines for `iptables-restore --noflush`."""
    yield from _nat(service)
    yield from _filter(service)


def _nat(service: Service) -> Iterator[str]:
    tag = service.tag
    services, mark, postrouting, node_ports = (chain(tag, name) for name in ("SERVICES", "MASQ", "POST", "PORTS"))
    yield "*nat"
    for name in (services, mark, postrouting, node_ports):
        yield f":{name} - [0:0]"
    for one in every(service):
        yield f":{_svc(tag, one)} - [0:0]"
        yield f":{_sep(tag, one)} - [0:0]"
    if service.node_port:
        yield f":{chain(tag, 'EXT')} - [0:0]"
    for hook in ("PREROUTING", "OUTPUT"):
        yield f'-A {hook} {_COMMENT} "tare: service portals" -j {services}'
    yield f'-A POSTROUTING {_COMMENT} "tare: postrouting rules" -j {postrouting}'
    yield f"-A {mark} -j MARK --or-mark {MARK}"
    yield f"-A {postrouting} -m mark ! --mark {MARK}/{MARK} -j RETURN"
    yield f"-A {postrouting} -j MARK --xor-mark {MARK}"
    yield f'-A {postrouting} {_COMMENT} "service traffic requiring SNAT" -j MASQUERADE --random-fully'
    for one in every(service):
        svc, sep, comment = _svc(tag, one), _sep(tag, one), f'{_COMMENT} "tare/service-{one.number}"'
        address, _, _ = one.endpoint.partition(":")
        to = f"-d {one.address}/32 -p tcp {comment} -m tcp --dport {one.port}"
        yield f"-A {services} {to} -j {svc}"
        yield f"-A {svc} ! -s {service.pods} {to} -j {mark}"
        yield f"-A {svc} {comment} -j {sep}"
        yield f"-A {sep} -s {address}/32 {comment} -j {mark}"
        yield f"-A {sep} -p tcp {comment} -m tcp -j DNAT --to-destination {one.endpoint}"
        if one.node_port:
            ext = chain(tag, "EXT")
            yield f"-A {node_ports} -p tcp {comment} -m tcp --dport {one.node_port} -j {ext}"
            yield f"-A {ext} {comment} -j {mark}"
            yield f"-A {ext} -j {svc}"
    # As with --nodeport-addresses: otherwise every address of the host would answer.
    only = f"-d {service.node_ip}/32" if service.node_ip else "-m addrtype --dst-type LOCAL"
    yield f'-A {services} {_COMMENT} "service nodeports, the last rule" {only} -j {node_ports}'
    yield "COMMIT"


def _filter(service: Service) -> Iterator[str]:
    """Rules that packets of every connection pass, new or not."""
    names = ("FORWARD", "FIREWALL", "EXTERNAL", "SERVICES", "LB", "PORTS")
    forward, firewall, external, services, balancer, node_ports = (chain(service.tag, name) for name in names)
    yield "*filter"
    for name in (forward, firewall, external, services, balancer, node_ports):
        yield f":{name} - [0:0]"
    new = "-m conntrack --ctstate NEW"
    yield f'-A INPUT {new} {_COMMENT} "load balancer firewall" -j {balancer}'
    yield f'-A INPUT {_COMMENT} "health check service ports" -j {node_ports}'
    yield f'-A INPUT {new} {_COMMENT} "externally-visible service portals" -j {external}'
    yield f"-A INPUT -j {firewall}"
    yield f'-A FORWARD {new} {_COMMENT} "load balancer firewall" -j {balancer}'
    yield f'-A FORWARD {_COMMENT} "forwarding rules" -j {forward}'
    yield f'-A FORWARD {new} {_COMMENT} "service portals" -j {services}'
    yield f'-A FORWARD {new} {_COMMENT} "externally-visible service portals" -j {external}'
    yield f'-A OUTPUT {new} {_COMMENT} "load balancer firewall" -j {balancer}'
    yield f'-A OUTPUT {new} {_COMMENT} "service portals" -j {services}'
    yield f"-A OUTPUT -j {firewall}"
    local = "! -s 127.0.0.0/8 -d 127.0.0.0/8"
    yield (
        f'-A {firewall} {local} {_COMMENT} "block incoming localnet connections" '
        "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
    )
    yield f"-A {forward} -m mark --mark {MARK}/{MARK} -j ACCEPT"
    yield f"-A {forward} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
    yield "COMMIT"


def iptables_removal(tag: str, saved: str) -> Iterator[str]:
    """Lines that remove a tag's chains, and all rules that jump to them, from the output of `iptables-save`."""
    own, table, chains = f"{chain(tag, '')}", "", list[str]()
    for line in saved.splitlines():
        if line.startswith("*"):
            table, chains = line, []
            yield table
        elif line.startswith(f":{own}"):
            chains.append(line[1:].split()[0])
            yield f":{chains[-1]} - [0:0]"  # empties the chain
        elif line.startswith("-A ") and f"-j {own}" in line and not line.startswith(f"-A {own}"):
            yield f"-D {line[3:]}"
        elif line == "COMMIT":
            for name in chains:
                yield f"-X {name}"
            yield "COMMIT"


def _svc(tag: str, one: One) -> str:
    return chain(tag, f"SVC-{one.number:05}")


def _sep(tag: str, one: One) -> str:
    return chain(tag, f"SEP-{one.number:05}")


def nft_table(tag: str) -> str:
    """Name of the table that holds all rules of a tag."""
    return f"tare-{tag}"


def nft_rules(service: Service) -> Iterator[str]:
    """Commands for `nft -f`."""
    services = list(every(service))
    yield f"table ip {nft_table(service.tag)} {{"
    yield "  map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }"
    yield "  set cluster-ips { type ipv4_addr;"
    yield f"    elements = {{ {', '.join(one.address for one in services)} }}"
    yield "  }"
    yield "  set nodeport-ips { type ipv4_addr; flags interval;"
    if service.node_ip:
        yield f"    elements = {{ {service.node_ip} }}"
    yield "  }"
    yield "  chain mark-for-masquerade {"
    yield f"    meta mark set meta mark | {MARK}"
    yield "  }"
    for one in services:
        yield from _nft_service(service, one)
    yield "  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict;"
    places = (f"{one.address} . tcp . {one.port} : goto service-{one.number:05}" for one in services)
    yield f"    elements = {{ {', '.join(places)} }}"
    yield "  }"
    yield "  map service-nodeports { type inet_proto . inet_service : verdict;"
    if service.node_port:
        yield f"    elements = {{ tcp . {service.node_port} : goto external }}"
    yield "  }"
    yield from _nft_hooks(service)
    yield "}"


def _nft_service(service: Service, one: One) -> Iterator[str]:
    address, _, _ = one.endpoint.partition(":")
    yield f"  chain endpoint-{one.number:05} {{"
    yield f"    ip saddr {address} jump mark-for-masquerade"
    yield f"    meta l4proto tcp dnat to {one.endpoint}"
    yield "  }"
    yield f"  chain service-{one.number:05} {{"
    yield f"    ip daddr {one.address} tcp dport {one.port} ip saddr != {service.pods} jump mark-for-masquerade"
    yield f"    numgen random mod 1 vmap {{ 0 : goto endpoint-{one.number:05} }}"
    yield "  }"
    if one.node_port:
        yield "  chain external {"
        yield "    jump mark-for-masquerade"
        yield f"    goto service-{one.number:05}"
        yield "  }"


def _nft_hooks(service: Service) -> Iterator[str]:
    yield f"""\
  chain services {{
    ip daddr . meta l4proto . th dport vmap @service-ips
    ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
  }}
  chain service-endpoints-check {{
    ip daddr . meta l4proto . th dport vmap @no-endpoint-services
  }}
  chain cluster-ips-check {{
    ip daddr @cluster-ips reject
    ip daddr {service.block} drop
  }}
  chain masquerading {{
    meta mark & {MARK} == 0 return
    meta mark set meta mark ^ {MARK}
    masquerade fully-random
  }}
  chain nat-prerouting {{ type nat hook prerouting priority dstnat;
    jump services
  }}
  chain nat-output {{ type nat hook output priority -100;
    jump services
  }}
  chain nat-postrouting {{ type nat hook postrouting priority srcnat;
    jump masquerading
  }}
  chain filter-input {{ type filter hook input priority -110;
    ct state new jump service-endpoints-check
  }}
  chain filter-forward {{ type filter hook forward priority -110;
    ct state new jump service-endpoints-check
    ct state new jump cluster-ips-check
  }}
  chain filter-output {{ type filter hook output priority -110;
    ct state new jump service-endpoints-check
  }}
  chain filter-output-post-dnat {{ type filter hook output priority -90;
    ct state new jump cluster-ips-check
  }}"""
