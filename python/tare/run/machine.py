"""Everything outside tare that a study runs on; each part can be a fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.databases import Database
from tare.databases.abilities import CHRONICLERS, CLUSTERS
from tare.databases.extensions import Chronicler, Cluster
from tare.deployments import Deployment, Instance, Right
from tare.deployments.registry import DeploymentFactory
from tare.errors import RunFailed
from tare.images import Image
from tare.monitors import Monitor
from tare.monitors.registry import MONITORS
from tare.run.between.sounding import Wire
from tare.run.clock import Clock, SystemClock
from tare.run.interrupts import Interrupts
from tare.run.parity.references import References
from tare.sites import Host, Site
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.storage import Storage
from tare.storage.registry import STORAGES, StorageFactory
from tare.workloads import Workload

Tree = Mapping[str, Any]


def cannot_repin(instance: Instance, cpus: str) -> None:
    """Of a machine that knows no control groups."""
    raise RunFailed(f"{instance.task.name} cannot be moved to CPUs {cpus} on this machine")


@dataclass(frozen=True)
class HostPart:
    """What a host of a site has of its own, where it is not the SUT's: each as in `Machine`, of this host."""

    host: Host
    layout: Layout
    ledger: Ledger
    engine: DockerClient | None
    prepare: Callable[[str], Image]
    host_facts: Callable[[], Tree]
    engine_facts: Callable[[], Tree | None]


@dataclass(frozen=True)
class Machine:
    """A site with all that knows how to use it.

    `prepare`: image reference → image ready on the site. `observe_path`: how a client's connections reach
    the server, `None` while there is none to see. `host_facts`, `engine_facts`: what the record keeps of the
    host and, where there is one, of its engine. `sweep` removes what dead processes left and says what.
    `set_cpus` moves a running task to the CPUs of a list. `references`: the runs made so far that later ones are
    held against. `parts`: the hosts other than the SUT's, by name; empty where one host plays both parts.
    """

    site: Site
    layout: Layout
    ledger: Ledger
    engine: DockerClient | None
    deployments: Mapping[str, DeploymentFactory]
    databases: Mapping[str, Database]
    workloads: Mapping[str, Workload[Any]]
    prepare: Callable[[str], Image]
    observe_path: Callable[[Instance, Instance], Tree | None]
    host_facts: Callable[[], Tree]
    engine_facts: Callable[[], Tree | None]
    sweep: Callable[[], tuple[str, ...]]
    monitors: Mapping[str, Monitor] = field(default_factory=lambda: MONITORS)
    chroniclers: Mapping[str, Chronicler] = field(default_factory=lambda: CHRONICLERS)
    clusters: Mapping[str, Cluster] = field(default_factory=lambda: CLUSTERS)
    set_cpus: Callable[[Instance, str], None] = cannot_repin
    references: References = field(default_factory=References)
    clock: Clock = field(default_factory=SystemClock)
    interrupts: Interrupts = field(default_factory=Interrupts)
    storages: Mapping[str, StorageFactory] = field(default_factory=lambda: STORAGES)
    parts: Mapping[str, HostPart] = field(default_factory=dict)
    wire: Wire | None = None
    """Between the two hosts; `None` where one plays both parts."""

    @property
    def client_part(self) -> HostPart | None:
        """What belongs to the client's host, `None` where that is the SUT's."""
        return self.parts.get(self.site.client.name)

    @property
    def sut_address(self) -> str | None:
        """At which clients on another host find the SUT's; `None` where there is no other host."""
        return self.site.addresses[self.site.sut.name] if self.client_part is not None else None

    def prepare_for(self, reference: str, host: Host) -> Image:
        """The image ready on one of the site's hosts."""
        part = self.parts.get(host.name)
        return self.prepare(reference) if part is None else part.prepare(reference)

    def deployment(self, name: str, host: Host) -> Deployment:
        """The deployment of that name on one of the site's hosts."""
        part = self.parts.get(host.name)
        if part is not None:
            return self.deployments[name](part.host, part.ledger, part.engine)
        return self.deployments[name](host, self.ledger, self.engine)

    def storage(self, name: str) -> Storage:
        """The storage of that name on the SUT's host."""
        return self.storages[name](self.site.sut, self.ledger, self.engine)

    def engine_lost(self, *names: str) -> str | None:
        """Why the engine does not answer any more, `None` where it does or none of these deployments needs one."""
        if not any(Right.ENGINE in self.deployments[name].needs for name in names):
            return None
        engines = {self.site.sut.name: self.engine} | {name: part.engine for name, part in self.parts.items()}
        for host, engine in engines.items():
            try:
                if engine is not None:
                    engine.ping()
            except (DockerException, RequestException) as error:
                return f"{error} (on {host})" if self.parts else str(error)
        return None
