"""Resources that the tasks of one run share: the parent cgroup and the bridge."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tare.deployments import Lan
from tare.deployments.cgroup.placement import Placement, placement_of
from tare.deployments.cgroup.removal import clear_watchers
from tare.deployments.network.bridge import Bridge, ensure_bridge, remove_bridge
from tare.deployments.network.lan import attach_to_lan
from tare.errors import EnvironmentLacks
from tare.record.engine_facts import EngineFacts
from tare.sites import Host
from tare.sites.engine import engine_facts
from tare.sites.ledger import Ledger
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient


class SharedResources:
    """Makes shared resources on demand; the last task of the run to leave removes them."""

    def __init__(self, host: Host, ledger: Ledger, engine: DockerClient | None) -> None:
        self._host = host
        self._ledger = ledger
        self._engine = engine

    @cached_property
    def placement(self) -> Placement:
        """How cgroups are made on this host; determined once, when it is first needed.

        A rootless engine does not decide it: a user's cgroups are no place for the tasks of a run.
        """
        return placement_of(self._host, self._ledger, None if self.rootless else self._engine)

    @cached_property
    def facts(self) -> EngineFacts:
        """Facts that the engine reports; none without an engine."""
        return EngineFacts() if self._engine is None else engine_facts(self._engine)

    @property
    def of_podman(self) -> bool:
        """Whether the engine is Podman."""
        return self.facts.engine == "podman"

    @property
    def rootless(self) -> bool:
        """Whether the engine runs as a user."""
        return bool(self.facts.engine_rootless)

    def bridge(self, parent: str) -> Bridge:
        """The run's bridge.

        A server in the host's network that clients on the bridge must reach listens on its gateway.
        """
        if self._engine is None:
            raise EnvironmentLacks("a bridge network needs a container engine", hint="start one, see `tare doctor`")
        return ensure_bridge(self._engine, self._ledger, self._host.name, parent)

    def lan(self, parent: str, kind: NetworkKind, lan: Lan) -> dict[str, Any]:
        """Options that attach a container to the network between hosts with an address of its own."""
        if self._engine is None:
            raise EnvironmentLacks(f"`{kind}` needs a container engine", hint="start one, see `tare doctor`")
        return attach_to_lan(self._engine, self._ledger, self._host.name, parent, kind, lan)

    def leave(self, parent: str) -> None:
        """Remove the shared resources, unless a task of the run is still in the parent cgroup."""
        if self.of_podman:
            clear_watchers(self._host, self.placement.cgroups, self.placement.path(parent))
        if self.placement.prune_parent(parent) and self._engine is not None:
            remove_bridge(self._engine, self._ledger, self._host.name, parent)
