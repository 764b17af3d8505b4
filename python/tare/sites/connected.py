"""A connected site of sites.yaml: its hosts, one ledger for all of them, and each host's home and engine."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

from tare.errors import EnvironmentLacks
from tare.sites import Host, Site
from tare.sites.file import LOCAL, HostSpec, SiteSpec, SshSpec, display_name
from tare.sites.layout import Layout, default_layout
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.process import boot_id
from tare.sites.sidecar.making import host_of_user, host_of_user_here
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.address import address_of, own_address
from tare.sites.ssh.dialing import Dialer, SshDialer, agent_program
from tare.sites.ssh.engine import ForwardedEngine
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger, SiteLedger
from tare.sites.ssh.link import Link

Dial = Callable[[SshSpec], Dialer]


@dataclass(frozen=True)
class ConnectedSite:
    """`homes`: name of a host → its TARE_HOME. `links`: connections of the hosts over SSH."""

    spec: SiteSpec
    site: Site
    ledger: Ledger
    homes: Mapping[str, Layout]
    links: Mapping[str, Link]
    _engines: ForwardedEngines = field(repr=False)

    @property
    def sockets(self) -> frozenset[str]:
        """Directories of forwarded engines on this machine, which are in the ledger until the site is left."""
        return frozenset(self._engines.folders)

    def host_spec(self, host: Host) -> HostSpec:
        """Specification in the file of one of the site's hosts."""
        return next(spec for spec in self.spec.hosts if display_name(spec) == host.name)

    def engine_url(self, host: Host) -> str | None:
        """Local URL of the host's container engine, valid until the site is left.

        `None` for this machine's default.
        """
        spec = self.host_spec(host)
        return self._engines.url(spec) if isinstance(spec, SshSpec) else None


@dataclass
class ForwardedEngines:
    """One forwarded engine per host, from its first use until `stack` ends. `here`: the ledger of this machine."""

    here: Ledger
    stack: ExitStack
    folders: set[str] = field(default_factory=set)
    _urls: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def url(self, spec: SshSpec) -> str:
        """Local URL of the engine. Raises `EnvironmentLacks`."""
        with self._lock:
            if spec.display_name not in self._urls:
                forwarded = ForwardedEngine(spec, self.here)
                self.stack.callback(forwarded.close)
                self.folders.add(str(forwarded.folder))
                self._urls[spec.display_name] = forwarded.url
            return self._urls[spec.display_name]


@contextmanager
def connected(
    spec: SiteSpec, *, session: str | None = None, layout: Layout | None = None, dial: Dial | None = None
) -> Iterator[ConnectedSite]:
    """Connect to every host of the site.

    Raises `EnvironmentLacks` with one sentence for the first host that refuses. `session`: a tare that returns with
    the same name finds its agents, which have cleared up what an earlier one left (`session_of`); without a
    session, it finds nothing.
    """
    layout = layout or default_layout()
    dial = dial or _by_ssh(session or secrets.token_hex(8))
    with ExitStack() as stack:
        here = SqliteLedger(layout.ledger)
        engines = ForwardedEngines(here, stack)
        hosts: dict[str, Host] = {}
        links: dict[str, Link] = {}
        for each in spec.hosts:
            name = display_name(each)
            if isinstance(each, SshSpec):
                links[name] = Link(name, dial(each), engine=each.engine)
                stack.callback(links[name].close)
                if links[name].agent.uid == 0:
                    hosts[name] = SshHost(links[name])
                else:
                    hosts[name] = host_of_user(links[name], partial(engines.url, each), stack)
            elif os.geteuid() == 0:
                hosts[name] = LocalHost(name)
            else:
                hosts[name] = host_of_user_here(name, layout, here, stack)
        _refuse_two_names(links, hosts, layout)
        there = {name: AgentLedger(link) for name, link in links.items()}
        homes = {name: Layout(Path(links[name].agent.home)) if name in links else layout for name in hosts}
        yield ConnectedSite(spec, _site(spec, hosts), SiteLedger(here, there), homes, links, engines)


def session_of(store: Path) -> str:
    """The session of a store's writer: the same when an interrupted study continues."""
    here = boot_id(LocalHost())
    return hashlib.sha256(f"{store.absolute()}\0{here}".encode()).hexdigest()[:16]


def _by_ssh(session: str) -> Dial:
    agent = agent_program()
    return lambda spec: SshDialer(spec, session, agent)


def _site(spec: SiteSpec, hosts: Mapping[str, Host]) -> Site:
    nodes = tuple(hosts[display_name(each)] for each in spec.nodes)
    alone = len(spec.hosts) == 1
    addresses = {
        display_name(each): address_of(each, alone=alone) for each in spec.hosts if isinstance(each, SshSpec)
    }
    if LOCAL in hosts and addresses:
        addresses[LOCAL] = own_address(next(iter(addresses.values())))
    return Site(
        sut=nodes[0],
        client=hosts[display_name(spec.client)],
        labels={"site": spec.name},
        nodes=nodes if len(nodes) > 1 else (),
        addresses=addresses,
        container_addresses={
            display_name(each): each.container_address
            for each in spec.hosts
            if isinstance(each, SshSpec) and each.container_address is not None
        },
    )


def _refuse_two_names(links: Mapping[str, Link], hosts: Mapping[str, Host], layout: Layout) -> None:
    """Refuse two names of one machine, which need not look alike: server and client would share it unnoticed."""
    seen: dict[str, str] = {}
    if (here := next((name for name in hosts if name not in links), None)) is not None and layout.home.exists():
        about = layout.home.stat()
        seen[f"{boot_id(hosts[here])}:{about.st_dev}:{about.st_ino}"] = here
    for name, link in links.items():
        if (other := seen.setdefault(link.agent.place, name)) != name:
            raise EnvironmentLacks(
                f"{other} and {name} are one host under two names",
                hint="write the same host for both, or use two hosts",
            )
