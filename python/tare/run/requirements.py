"""Which requirements the arms of a plan have of a host, and which of them it does not meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from tare.deployments import POD
from tare.deployments.network.requirements import NETWORKS
from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.images.requirement import IMAGES
from tare.monitors import Monitor, why_unavailable
from tare.monitors.registry import MONITORS
from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS
from tare.requirements import HostPlan, Requirement, Use, some_of
from tare.requirements.cpus import CPUS
from tare.requirements.engines import ENGINE, NAMED
from tare.requirements.python import PYTHON
from tare.requirements.resources import ADDRESS, DISK, HOME, HUGE_PAGES, MEMORY, wants_huge_pages
from tare.requirements.rights import ROOT
from tare.run.monitoring.monitors import interval_of, required_monitors
from tare.sites import Site
from tare.sites.engines import ROOTLESS
from tare.storage.registry import STORAGES, StorageFactory
from tare.study.model import Arm

EVERY_RUN = (HOME, PYTHON, ADDRESS, CPUS, MEMORY, DISK)
"""Requirements of every host that has a part in a run."""


@dataclass(frozen=True)
class PlugIns:
    """The plug-ins that plans may name."""

    deployments: Mapping[str, DeploymentFactory] = field(default_factory=lambda: DEPLOYMENTS)
    storages: Mapping[str, StorageFactory] = field(default_factory=lambda: STORAGES)
    monitors: Mapping[str, Monitor] = field(default_factory=lambda: MONITORS)

    def installed(self) -> tuple[Requirement, ...]:
        """Return each requirement of what is installed, once."""
        plug_ins = (self.deployments, self.storages, self.monitors, PROTOCOLS)
        of_plug_ins = (need for kind in plug_ins for each in kind.values() for need in each.needs)
        of_networks = (need for needs in NETWORKS.values() for need in needs)
        return tuple(dict.fromkeys((*EVERY_RUN, HUGE_PAGES, IMAGES, *of_plug_ins, *NAMED.values(), *of_networks)))

    def required_by(self, use: Use) -> Iterator[Requirement]:
        """Yield what one use requires of its host, perhaps more than once; monitors and protocols come on top."""
        placed, of_deployment = use.placement, self.deployments[use.placement.deployment].needs
        yield from EVERY_RUN
        yield from (each for each in of_deployment if each is not ENGINE or placed.engine is None)
        if placed.engine is not None:
            yield NAMED[placed.engine]
        if placed.engine == ROOTLESS or (placed.limits.in_cgroups and ENGINE not in of_deployment):
            yield ROOT  # tare itself makes the control groups
        if placed.deployment != POD:  # a cluster makes its own networks
            yield from NETWORKS.get(placed.network, ())
        if use.settings is not None and wants_huge_pages(use.settings):
            yield HUGE_PAGES
        if use.settings is not None:
            of_storage = self.storages[use.settings.sut.storage.kind].needs
            # The layers in a virtual machine are not made by an engine.
            yield from (each for each in of_storage if each is not ENGINE or ENGINE in of_deployment)

    def blockers(self, there: HostPlan, arms: int) -> Iterator[str]:
        """Yield a sentence for each requirement that the host does not meet. `arms`: number of arms in all."""
        wanted: dict[Requirement, list[Use]] = {}
        for use in there.uses:
            for each in dict.fromkeys(self.required_by(use)):
                wanted.setdefault(each, []).append(use)
        if there.study is not None:
            wanted |= {each: list(there.uses) for each in PROTOCOLS[there.study.protocol.name].needs}
        for requirement, uses in wanted.items():
            yield from requirement.blockers(replace(there, uses=tuple(uses)), arms)
        yield from self._missing_monitors(there, arms)

    def _missing_monitors(self, there: HostPlan, arms: int) -> Iterator[str]:
        """Yield a sentence for each monitor that runs cannot do without and a server's host cannot run."""
        wanted: dict[tuple[str, str], list[str]] = {}
        for use in there.uses:
            for name, spec in {} if use.settings is None else required_monitors(use.settings).items():
                why = why_unavailable(self.monitors[name], there.host, interval_of(name, spec, 0.0), spec.options)
                if why is not None:
                    wanted.setdefault((name, why), []).append(use.arm)
        for (name, why), named in wanted.items():
            yield f"the monitor {name} cannot run ({some_of(tuple(dict.fromkeys(named)), arms)}): {why}"

    def blockers_of_images(self, here: HostPlan, arms: int) -> Iterator[str]:
        """Yield a sentence for each image that cannot be had, on the machine that tare runs on.

        Images that no deployment opens, as those of fakes, are not looked at.
        """
        uses = tuple(use for use in here.uses if self.deployments[use.placement.deployment].own_root)
        if uses:
            yield from IMAGES.blockers(replace(here, uses=uses), arms)


def needs_engine(plan: Plan, deployments: Mapping[str, DeploymentFactory]) -> bool:
    """Whether a container engine makes a server or client of the plan."""
    return any(ENGINE in deployments[use.placement.deployment].needs for use in uses_of(plan))


def uses_of(plan: Plan) -> tuple[Use, ...]:
    """Return both sides of every arm, as placed on one host."""
    return tuple(use for arm in plan.study.arms for use in _both(arm))


def uses_on(plan: Plan, sites: Sequence[Site]) -> Mapping[str, tuple[Use, ...]]:
    """Host → what the plan places there. `sites`: one, or two if server and client swap hosts."""
    placed: dict[str, list[Use]] = {}
    for site, arm in product(sites, plan.study.arms):
        server, *clients = _both(arm)
        for host in site.sut_hosts:
            placed.setdefault(host.name, []).append(server)
        for client in clients:
            placed.setdefault(site.client.name, []).append(client)
    return {name: tuple(uses) for name, uses in placed.items()}


def _both(arm: Arm) -> tuple[Use, ...]:
    server, client = Use(arm.name, arm.settings.sut, arm.settings), arm.settings.client
    return (server,) if client is None else (server, Use(arm.name, client))
