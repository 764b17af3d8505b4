"""A pod around one container: sandbox, network, Service and control groups, each only if the task asks for it.

All names derive from the task's name, so that any tare can remove the pod.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from docker.errors import ImageNotFound, NotFound
from docker.types import LogConfig

from tare.deployments import Endpoint, Instance, PodSetting, Task
from tare.deployments.cgroup.placement import Placement, PlainCgroups
from tare.deployments.cgroup.removal import clear
from tare.deployments.defaults import shm_bytes
from tare.deployments.network.bridge import Bridge, free_network
from tare.deployments.observe import namespaces_of
from tare.deployments.pod import cni, rules
from tare.deployments.pod.pause import PATH, pause_image
from tare.deployments.pod.qos import SANDBOX_OOM, PodGroups, groups_of
from tare.deployments.pod.services import Service, cluster_ip_of
from tare.deployments.rlimits import ceilings
from tare.deployments.vm.network import remove_link
from tare.errors import EnvironmentLacks, RunFailed
from tare.record.made_by import PodFacts
from tare.sites import Host, Process
from tare.sites.engine import labels
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import digits_of, make_marked
from tare.study.values import POD_NETWORKS, SERVICE_NETWORKS, NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_CALL_S = 60.0
_REPOSITORY = "tare/pause"
_LEAST_SHARES = 2
SERVICE_POOL = "10.232.0.0/14"
_SERVICE_PREFIX = 18
_NODE_PORTS = range(30_000, 32_768)
"""kube-apiserver's default (--service-node-port-range)."""


@dataclass(frozen=True)
class Made:
    """`sandbox`: ID of the container that holds the namespaces. `address`: of the pod.

    `published`: of its Service.
    """

    sandbox: str
    pid: int
    address: str | None
    published: Endpoint | None
    groups: PodGroups | None
    facts: PodFacts


@dataclass
class Pods:
    """Makes and removes pods on one host."""

    host: Host
    ledger: Ledger
    engine: DockerClient
    placement: Placement
    made: dict[str, Made] = field(default_factory=dict)
    """Name of a task → its pod."""

    def make(self, task: Task, setting: PodSetting, bridge: Bridge | None) -> Made:
        """Make everything that a container of the pod needs, before the container; if it fails, call `remove`."""
        groups = self._groups(task, setting)
        sandbox = self._sandbox(task, bridge, groups)
        pid = int(sandbox.attrs["State"]["Pid"])
        facts = PodFacts(qos=None if setting.qos is None else setting.qos.value)
        if groups is not None:
            facts = replace(facts, kubelet_oom_score_adj=groups.oom_score_adj)
            groups = replace(groups, oom_score_adj=self._score(groups.oom_score_adj))
        address = next((seen["IPAddress"] for seen in _networks(sandbox) if seen.get("IPAddress")), None)
        published = None
        if task.network in POD_NETWORKS:
            attached = self._attach(task, setting, pid)
            address, (published, rules_in_force) = attached.address, self._publish(task, setting, attached)
            if rules_in_force is not None:
                by, services, count = rules_in_force.by, rules_in_force.services, rules_in_force.rules
                facts = replace(facts, proxy=by, services=services, rules=count)
            facts = replace(facts, interface=cni.interface_kind(self.host, f"/proc/{pid}/ns/net"))
        made = Made(str(sandbox.id), pid, address, published, groups, facts)
        self.made[task.name] = made
        return made

    def observe(self, instance: Instance) -> PodFacts | None:
        """Read the namespaces shared with the sandbox, and add the facts read when the pod was made."""
        made = self.made.get(instance.task.name)
        if made is None:
            return None
        own, theirs = (namespaces_of(self.host, pid) for pid in (instance.process.pid, made.pid))
        host = namespaces_of(self.host, "self")
        held = [kind for kind, inode in own.items() if theirs.get(kind) == inode and host.get(kind) != inode]
        return replace(made.facts, held_by_sandbox=",".join(sorted(held)))

    def remove(self, task: Task) -> None:
        """Remove everything of a task's pod; safe if nothing or only a part was made.

        Every step is tried even if another fails; whatever cannot be removed stays in the ledger.
        """
        self.made.pop(task.name, None)
        with ExitStack() as steps:  # last in, first out
            steps.callback(self._remove_groups, task)
            steps.callback(self._remove_links, task)
            steps.callback(self._remove_sandbox, task)
            steps.callback(self._detach, task)
            steps.callback(self._drop_rules, task)

    def _groups(self, task: Task, setting: PodSetting) -> PodGroups | None:
        if setting.qos is None:
            return None
        if not isinstance(self.placement, PlainCgroups):
            raise EnvironmentLacks(
                "pods' control groups are those of kubelet's driver cgroupfs, and this engine's is systemd",
                hint="leave `pod.qos` out, or use an engine with the driver cgroupfs",
            )
        cgroups = self.placement.cgroups
        groups = groups_of(cgroups, task.cgroup_parent, task.name, setting, task.limits, self.host.read)
        self.ledger.note(Kind.CGROUP, groups.pod, host=self.host.name)
        self.host.run(["mkdir", "-p", "--", *cgroups.directories(groups.pod)], timeout_s=_CALL_S)
        groups = groups_of(cgroups, task.cgroup_parent, task.name, setting, task.limits, self.host.read)
        for write in groups.writes:  # computed again, as the CPUs of a new group are empty
            self.host.put(write.value.encode(), write.path)
        return groups

    def _sandbox(self, task: Task, bridge: Bridge | None, groups: PodGroups | None) -> Container:
        name, image = sandbox_of(task.name), image_of(task.name)
        machine = self.host.run(["uname", "-m"], timeout_s=_CALL_S).text.strip()
        self.ledger.note(Kind.IMAGE, image, host=self.host.name)
        repository, _, tag = image.rpartition(":")
        self.engine.api.import_image_from_data(pause_image(machine), repository=repository, tag=tag)
        self.ledger.note(Kind.CONTAINER, name, host=self.host.name)
        parent = f"/{groups.pod}" if groups else self.placement.engine_parent(task.cgroup_parent)
        given: dict[str, Any] = (
            {"cpu_shares": _LEAST_SHARES, "oom_score_adj": self._score(SANDBOX_OOM)} if groups else {}
        )
        if task.network is NetworkKind.HOST:
            given["network_mode"] = "host"
        elif bridge is not None:
            given |= {"network": bridge.name, "hostname": task.name}
        else:
            given |= {"network_mode": "none", "hostname": task.name}
        container = self.engine.containers.create(
            image,
            command=[PATH],
            name=name,
            cgroup_parent=parent,
            ipc_mode="shareable",
            shm_size=shm_bytes(task.limits),
            read_only=True,
            init=False,
            log_config=LogConfig(type=LogConfig.types.JSON),
            labels=labels(task.cgroup_parent, self._owner),
            **given,
        )
        container.start()
        container.reload()
        return container

    @property
    def _owner(self) -> Process:
        return self.ledger.owner_on(self.host.name)

    def _attach(self, task: Task, setting: PodSetting, pid: int) -> cni.Attachment:
        links, scratch = cni.links_of(task.name, self._owner), cni.scratch_of(task.name)
        for plugin in (setting.cni, "host-local", *(["portmap"] if task.network is NetworkKind.HOST_PORT else [])):
            cni.directory_of(self.host, plugin)  # checked before anything is made
        self.ledger.note(Kind.RULES, f"cni:{task.name}", host=self.host.name)
        make_marked(self.host, scratch, "0700")
        if setting.cni == "bridge":
            self.ledger.note(Kind.LINK, links.bridge, host=self.host.name)
        else:
            self._ip(
                "link", "add", "name", links.master, "type", "veth", "peer", "name", links.peer, note=links.master
            )
            self._ip("link", "set", "dev", links.peer, "up")
            self._ip("link", "set", "dev", links.master, "up")
        port = task.port if task.network is NetworkKind.HOST_PORT else None
        attached = cni.attach(self.host, setting.cni, task.name, links, scratch, f"/proc/{pid}/ns/net", port)
        if setting.cni != "bridge":  # macvlans of one parent see each other, but never the parent
            own = ("link", "add", "link", links.master, "name", links.own, "type", "macvlan", "mode", "bridge")
            self._ip(*own, note=links.own)
            self._ip("address", "add", f"{attached.gateway}/{attached.network.prefixlen}", "dev", links.own)
            self._ip("link", "set", "dev", links.own, "up")
        return attached

    def _publish(
        self, task: Task, setting: PodSetting, attached: cni.Attachment
    ) -> tuple[Endpoint | None, rules.InForce | None]:
        """Publish the task's port; return the address for clients if not the pod's own, and Services' rules."""
        if task.network is NetworkKind.HOST_PORT:
            return Endpoint(attached.gateway, task.port), None
        if task.network not in SERVICE_NETWORKS:
            return None, None
        block = _block(self.host, task.name)
        wanted = task.network is NetworkKind.NODE_PORT
        service = Service(
            tag=tag_of(task.name, self._owner),
            cluster_ip=cluster_ip_of(block, setting.services),
            block=block,
            port=task.port,
            endpoint=f"{attached.address}:{task.port}",
            pods=attached.network,
            of=setting.services,
            node_ip=attached.gateway,
            node_port=self._node_port(task.name) if wanted else 0,
        )
        self.ledger.note(Kind.RULES, f"{setting.proxy}:{service.tag}", host=self.host.name)
        in_force = rules.put(self.host, setting.proxy, service)
        if in_force.services != setting.services:
            raise RunFailed(
                f"{setting.services} Services should be in the kernel's rules; it has {in_force.services}"
            )
        if wanted:
            return Endpoint(attached.gateway, service.node_port), in_force
        return Endpoint(service.cluster_ip, task.port), in_force

    def _score(self, wanted: int) -> int:
        """Score that may be set: without CAP_SYS_RESOURCE not below 0.

        Many machines withhold this capability (proc_pid_oom_score_adj(5)).
        """
        return max(wanted, 0) if ceilings(self.host) else wanted

    def _node_port(self, name: str) -> int:
        """A node port on which nothing of the host listens."""
        table = (self.host.read("/proc/net/tcp") or b"").decode() + (
            self.host.read("/proc/net/tcp6") or b""
        ).decode()
        used = {
            int(line.split()[1].rpartition(":")[2], 16) for line in table.splitlines() if ":" in line.split()[1]
        }
        first = int(hashlib.sha256(name.encode()).hexdigest(), 16)
        ports = (_NODE_PORTS[(first + step) % len(_NODE_PORTS)] for step in range(len(_NODE_PORTS)))
        return next(port for port in ports if port not in used)

    def _ip(self, *words: str, note: str | None = None) -> None:
        if note is not None:
            self.ledger.note(Kind.LINK, note, host=self.host.name)
        try:
            self.host.run(["ip", *words], timeout_s=_CALL_S)
        except RunFailed as error:
            raise EnvironmentLacks(
                f"the interface of a pod cannot be made: {error.what}", hint="it needs root, iproute2 and macvlan"
            ) from error

    def _drop_rules(self, task: Task) -> None:
        for proxy in rules.PROXIES:
            ident = f"{proxy}:{tag_of(task.name, self._owner)}"
            if self._noted(Kind.RULES, ident):
                rules.drop(self.host, proxy, tag_of(task.name, self._owner))
                self.ledger.forget(Kind.RULES, ident, host=self.host.name)

    def _detach(self, task: Task) -> None:
        if self._noted(Kind.RULES, f"cni:{task.name}"):
            cni.detach(self.host, task.name, cni.scratch_of(task.name))
            self.ledger.forget(Kind.RULES, f"cni:{task.name}", host=self.host.name)

    def _remove_links(self, task: Task) -> None:
        for link in _links(task.name, self._owner):
            if self._noted(Kind.LINK, link):
                remove_link(self.host, link)
                self.ledger.forget(Kind.LINK, link, host=self.host.name)

    def _remove_groups(self, task: Task) -> None:
        for entry in self.ledger.entries():
            if entry.kind is Kind.CGROUP and entry.ident.endswith(f"/pod{task.name}"):
                clear(self.host, self.placement.cgroups, entry.ident)
                self.ledger.forget(Kind.CGROUP, entry.ident, host=self.host.name)

    def _remove_sandbox(self, task: Task) -> None:
        name = sandbox_of(task.name)
        with suppress(NotFound):
            self.engine.containers.get(name).remove(v=True, force=True)
        self.ledger.forget(Kind.CONTAINER, name, host=self.host.name)
        with suppress(ImageNotFound):
            self.engine.images.remove(image_of(task.name), force=True)
        self.ledger.forget(Kind.IMAGE, image_of(task.name), host=self.host.name)

    def _noted(self, kind: Kind, ident: str) -> bool:
        return any(
            (entry.kind, entry.ident, entry.host) == (kind, ident, self.host.name)
            for entry in self.ledger.entries()
        )


def sandbox_of(name: str) -> str:
    """Name of the container that holds the namespaces of a task's pod."""
    return f"{name}-pod"


def image_of(name: str) -> str:
    """Reference of the sandbox's image."""
    return f"{_REPOSITORY}:{name}"


def tag_of(name: str, owner: Process) -> str:
    """Tag of a pod's rules: 12 digits, as names of chains are short."""
    return digits_of(name, owner, 12)


def _links(name: str, owner: Process) -> tuple[str, ...]:
    links = cni.links_of(name, owner)
    return (links.own, links.bridge, links.master)


def _block(host: Host, name: str) -> ipaddress.IPv4Network:
    return free_network(host, name, _SERVICE_PREFIX, ipaddress.IPv4Network(SERVICE_POOL))


def _networks(container: Container) -> list[Mapping[str, Any]]:
    return list((container.attrs["NetworkSettings"].get("Networks") or {}).values())
