"""Everything outside tare that a study runs on; each part can be a fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_interface
from typing import Any, cast

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.databases import Database
from tare.databases.abilities import CLUSTERS, EVENT_SOURCES
from tare.databases.extensions import Cluster, EventSource
from tare.deployments import Deployment, Instance, Lan
from tare.deployments.registry import DeploymentFactory
from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image
from tare.images.prepare import into
from tare.monitors import Monitor
from tare.monitors.registry import MONITORS
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.network_path import NetworkPath
from tare.requirements.engines import ENGINE
from tare.run.between.sounding import Wire
from tare.run.clock import Clock, SystemClock
from tare.run.interrupts import Interrupts
from tare.run.parity.references import References
from tare.sites import Host, Site
from tare.sites.engine import engine_facts, in_words, why_away
from tare.sites.engines import EngineLedger, Engines
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.storage import Storage
from tare.storage.registry import STORAGES, StorageFactory
from tare.study.model import ArmSettings, Placement, SutSpec
from tare.study.values import OWN_ADDRESS
from tare.workloads import Workload

_QUICK_S = 10.0
_HAS_ROOM = (
    'mkdir -p -- "$1" && f=$(mktemp "$1/.XXXXXX") || exit; head -c 4096 /dev/zero >"$f"; c=$?; rm -f "$f"; exit $c'
)
"""Writes a block, which fails on a full file system, and removes it even if tare is killed meanwhile."""


def cannot_repin(instance: Instance, cpus: str) -> None:
    """Stand-in for `Machine.set_cpus` on a machine without control groups: raises `RunFailed`."""
    raise RunFailed(f"{instance.task.name} cannot be moved to CPUs {cpus} on this machine")


def facts_reader(engine: DockerClient | None, host: Host, *, needed: bool) -> Callable[[], EngineFacts | None]:
    """Return how runs read the facts of a host's engine, if any.

    An engine that no run needs is asked now, and what it says stands for all runs: it may go away meanwhile.
    """
    if engine is not None and needed:
        return lambda: engine_facts(engine, host)
    facts: EngineFacts | None = None
    with suppress(DockerException, RequestException):  # away already, as if it had never been there
        facts = None if engine is None else engine_facts(engine, host)
    return lambda: facts


@dataclass(frozen=True)
class EndHosts:
    """Hosts of the two ends of a network path."""

    server: Host
    client: Host


@dataclass(frozen=True)
class HostPart:
    """What one host of a site has of its own.

    `prepare`: image reference → image ready on the host. `host_facts`, `engine_facts`: the record's facts of the
    host and of its engine, if any. `engine`: `None` also where no run needs it.
    """

    host: Host
    layout: Layout
    ledger: Ledger
    engine: DockerClient | None
    prepare: Callable[[str], Image]
    host_facts: Callable[[], HostFacts]
    engine_facts: Callable[[], EngineFacts | None]


@dataclass(frozen=True)
class Machine:
    """A site with everything needed to use it; one machine is a site of one host.

    `own`: the part of the SUT's host, or of its first node's; `parts`: of the site's other hosts, by name, empty on
    a single host. `observe_path`: how a client's connections reach the server; `None` while there are none. `sweep`
    removes what dead processes left and reports it; `sweep_own` removes what this process could not remove earlier
    because its engine did not answer; `leave_clusters` removes the cluster namespaces of the study. `set_cpus`
    moves a running task to a list of CPUs. `references`: earlier runs that later ones are compared with.
    `engines`: engines that arms select by name, on the SUT's host. `swapped`: the same machine with server and
    client on each other's host, for studies that swap them every other block.
    """

    site: Site
    own: HostPart
    deployments: Mapping[str, DeploymentFactory]
    databases: Mapping[str, Database]
    workloads: Mapping[str, Workload[Any]]
    observe_path: Callable[[Instance, Instance, EndHosts], NetworkPath | None]
    sweep: Callable[[], tuple[str, ...]]
    sweep_own: Callable[[], tuple[str, ...]] = tuple
    leave_clusters: Callable[[], tuple[str, ...]] = tuple
    monitors: Mapping[str, Monitor] = field(default_factory=lambda: MONITORS)
    event_sources: Mapping[str, EventSource] = field(default_factory=lambda: EVENT_SOURCES)
    clusters: Mapping[str, Cluster] = field(default_factory=lambda: CLUSTERS)
    set_cpus: Callable[[Instance, str], None] = cannot_repin
    references: References = field(default_factory=References)
    clock: Clock = field(default_factory=SystemClock)
    interrupts: Interrupts = field(default_factory=Interrupts)
    storages: Mapping[str, StorageFactory] = field(default_factory=lambda: STORAGES)
    parts: Mapping[str, HostPart] = field(default_factory=dict)
    wire: Wire | None = None
    """The network between the hosts; `None` on a single host."""
    engines: Engines = field(default_factory=Engines)
    swapped: Machine | None = None

    def of_block(self, block: int) -> Machine:
        """Return the machine for a block: as in the sites file for odd blocks, with hosts swapped for even ones."""
        if self.swapped is None or block % 2:
            return self
        return replace(self.swapped, references=self.references)

    @property
    def client_part(self) -> HostPart | None:
        """The client's host; `None` where client and SUT share a host."""
        return self.parts.get(self.site.client.name)

    def address_of(self, host: Host) -> str | None:
        """Return the address at which the site's other hosts reach this host; `None` on a single host."""
        return self.site.addresses[host.name] if self.client_part is not None else None

    @property
    def layout(self) -> Layout:
        """The layout of TARE_HOME on the SUT's host."""
        return self.own.layout

    @property
    def ledger(self) -> Ledger:
        """The ledger of the SUT's host."""
        return self.own.ledger

    def part_of(self, host: Host) -> HostPart:
        """Return what one of the site's hosts has of its own."""
        return self.parts.get(host.name, self.own)

    def ledger_on(self, host: Host) -> Ledger:
        """Return the ledger of one of the site's hosts."""
        return self.part_of(host).ledger

    def layout_on(self, host: Host) -> Layout:
        """Return the layout of TARE_HOME on one of the site's hosts."""
        return self.part_of(host).layout

    def facts_of(self, host: Host) -> HostFacts:
        """Return the record's facts of one of the site's hosts."""
        return self.part_of(host).host_facts()

    def lan(self, placed: Placement) -> Lan | None:
        """Return the network between the hosts if the SUT's container has an address of its own on it."""
        given = self.site.container_addresses.get(self.site.sut.name)
        if placed.network not in OWN_ADDRESS or given is None or self.wire is None:
            return None
        device = self.wire.devices["sut"].device
        if device is None:
            raise RunFailed(f"{self.site.sut.name} has no route to {self.site.client.name}", hint="`tare doctor`")
        own = ip_interface(given)
        return Lan(device, str(own.ip), str(own.network))

    def image_on(self, host: Host, placed: Placement) -> Image:
        """Prepare a side's image on one of the site's hosts, in the engine that the side selects."""
        image = self.part_of(host).prepare(placed.image)
        if placed.engine is None:
            return image
        ledger, engine = self._engine_of(placed, host)
        return into(image, layout=self.layout, ledger=ledger, engine=cast("DockerClient", engine))

    def facts_of_engines(self, settings: ArmSettings, host: Host | None = None) -> tuple[EngineFacts | None, ...]:
        """Return facts of each engine that sides use on a host; of a separate host, of its one engine.

        The record keeps the first: of an engine that a side names, else of the default engine.
        """
        if host is not None and (part := self.parts.get(host.name)) is not None:
            return (part.engine_facts(),)
        sides = settings.sides.values()
        named = dict.fromkeys(placed.engine for placed in sides if placed.engine is not None)
        facts = tuple(self.engines.facts(name) for name in named)
        if named and not any(placed.engine is None and self._needs_engine(placed) for placed in sides):
            return facts
        return (*facts, self.own.engine_facts())

    def _needs_engine(self, placed: Placement) -> bool:
        return ENGINE in self.deployments[placed.deployment].needs

    def deployment(self, placed: Placement, host: Host) -> Deployment:
        """Return the deployment of a side on one of the site's hosts."""
        return self.deployments[placed.deployment](host, *self._engine_of(placed, host))

    def storage(self, sut: SutSpec, host: Host) -> Storage:
        """Return the storage for the data of the SUT, or of one of its nodes, on a host."""
        return self.storages[sut.storage.kind](host, *self._engine_of(sut, host))

    def engine_lost(self, settings: ArmSettings) -> str | None:
        """Return why an engine can start no container; `None` if all can, or no side needs one."""
        every: list[tuple[Placement, Host]] = [(settings.sut, host) for host in self.site.sut_hosts]
        if settings.client is not None:
            every.append((settings.client, self.site.client))
        for placed, host in every:
            if not self._needs_engine(placed):
                continue
            try:
                _, engine = self._engine_of(placed, host)
                if engine is None:
                    return f"none answered on {host.name} when the study started"
                why = why_away(engine)
            except (DockerException, RequestException, EnvironmentLacks) as error:
                why = in_words(error)
            if why is not None:
                return f"{why} (on {host.name})" if self.parts else why
        return None

    def host_exhausted(self) -> str | None:
        """Return which host of the site cannot start programs or has no space under TARE_HOME, and why."""
        for host in self.site.hosts:
            work = str(self.layout_on(host).work)
            try:
                done = host.run(["sh", "-c", _HAS_ROOM, "sh", work], timeout_s=_QUICK_S, check=False)
            except RunFailed as error:
                return error.what
            if done.code != 0:
                last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                return f"{work} on {host.name} cannot be written: {''.join(last) or 'no room'}"
        return None

    def host_lost(self) -> str | None:
        """Return why a host of the site is out of reach for good; waits for a host that may come back."""
        return next((why for host in self.site.hosts if (why := host.lost_for_good()) is not None), None)

    def tell_losses(self, tell: Callable[[str], None]) -> None:
        """Report hosts that become unreachable or come back to `tell`, which is called in other threads."""
        for host in self.site.hosts:
            host.tell_losses(tell)

    def _engine_of(self, placed: Placement, host: Host) -> tuple[Ledger, DockerClient | None]:
        """Return the engine of a side's containers on a host, with the ledger of what it makes."""
        if placed.engine is None:
            part = self.part_of(host)
            return part.ledger, part.engine
        if host.name in self.parts:
            raise EnvironmentLacks(
                f"the engine `{placed.engine}` of {host.name} cannot be selected by name",
                hint="leave `engine` out",
            )
        return EngineLedger(self.ledger, placed.engine), self.engines.client(placed.engine)
