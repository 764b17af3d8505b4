"""Surroundings of one attempt: directory, images and names, from which its server and clients are started."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tare.databases import Database, Member, Secrets, ServerCommand, ServerPlan
from tare.databases.extensions import node_address
from tare.deployments import (
    MACHINES,
    POD,
    Bind,
    Confinement,
    Deployment,
    Endpoint,
    Instance,
    Task,
)
from tare.deployments.kube.node import address_in_cluster
from tare.deployments.vm.network import HOST_LOOPBACK
from tare.errors import EndedAtOnce
from tare.images import Image
from tare.run.attempt.client import Client, started
from tare.run.attempt.death import oom_kills
from tare.run.attempt.directory import WorkDirectory
from tare.run.attempt.ports import free_ports
from tare.run.attempt.server import BEFORE_AN_ANSWER, LOG_FILE, Node, Server, Starter, Sut, nodes_of, server_gone
from tare.run.attempt.socket_place import bind_for_client, bind_for_server, socket_for_client, socket_of
from tare.run.attempt.units import limits_of, machine_of, pod_of, sysctls_of
from tare.run.machine import Machine
from tare.sites import Host, Process
from tare.sites.marks import group_of
from tare.storage import DataMount
from tare.study.model import ArmSettings, NamedFile, Placement
from tare.study.values import IN_HOST, NetworkKind
from tare.workloads import ClientCommand, Files, Parameters, Target, Workload

_RUN_DIR = "/run/tare"
_DATA_DIR = "/data"
_TOKEN_DIGITS = 12
_LOOPBACK, _ANY = "127.0.0.1", "0.0.0.0"  # noqa: S104 - inside a network namespace of its own


@dataclass(frozen=True)
class Images:
    """Images of both sides. `client`: `None` where the workload's program is itself the SUT."""

    sut: Image
    client: Image | None
    nodes: tuple[Image, ...] = ()
    """The SUT's image on each node's host; empty where one host runs all nodes."""

    def of_node(self, number: int) -> Image:
        """Return the SUT's image on the host of a node, counted from 1."""
        return self.nodes[number - 1] if self.nodes else self.sut


@dataclass(frozen=True)
class RunContext:
    """Surroundings of one attempt. `token` is unique on the machine; all names derive from it."""

    machine: Machine
    settings: ArmSettings
    images: Images
    workdir: WorkDirectory
    token: str
    ports: tuple[int, ...]
    """One port for each node. All nodes listen on the first port, each at its own address. Where nodes have hosts
    of their own, one more port is for the traffic between nodes."""
    secrets: Secrets
    data_mounts: tuple[DataMount, ...] = ()
    """Location of each node's data; empty: in the work directory, as during loading."""
    first_token: str | None = None
    """Token of the attempt that started the server; `None` where this attempt starts its own."""
    client_workdir: WorkDirectory | None = None
    """The work directory on the client's host; `None` where client and SUT share a host and a directory."""
    files: Mapping[str, NamedFile] = field(default_factory=dict)
    """Content of the files that the study names, by path; none are checked during loading."""

    def workdir_of(self, node: Node) -> WorkDirectory:
        """Return the work directory on a node's host; all nodes on one host share it."""
        host = self.machine.site.host_of(node.number)
        return self.workdir if host is self.machine.site.sut else workdir_on(self.machine, host, self.token)

    @property
    def workdir_for_client(self) -> WorkDirectory:
        """The directory that clients write to."""
        return self.client_workdir or self.workdir

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The SUT's nodes, or the one program that is itself the SUT."""
        return nodes_of(self.settings.sut.nodes)

    def data_mount_of(self, node: Node) -> DataMount:
        """Return where a node's data lie and how its task reaches them."""
        if self.data_mounts:
            return self.data_mounts[node.number - 1]
        return DataMount(node.below(self.workdir_of(node).data), "")

    @property
    def storages(self) -> Mapping[str, tuple[Process, ...]]:
        """Host → processes that serve the data of its nodes; empty where no process does."""
        serving: dict[str, tuple[Process, ...]] = {host.name: () for host in self.machine.site.sut_hosts}
        for number, mount in enumerate(self.data_mounts, 1):
            if mount.server is not None:
                serving[self.machine.site.host_of(number).name] += (mount.server,)
        return serving

    @property
    def database(self) -> Database:
        """The database under test. Raises `KeyError` where the workload itself is the SUT."""
        return self.machine.databases[self.settings.sut.database or ""]

    @property
    def workload(self) -> Workload[Any]:
        """The load generator."""
        return self.machine.workloads[self.settings.workload_name]

    @cached_property
    def sut_deployment(self) -> Deployment:
        """Deployment of the server, or of a cluster's first node."""
        return self.machine.deployment(self.settings.sut, self.machine.site.sut)

    @cached_property
    def _other_deployments(self) -> Mapping[str, Deployment]:
        """Host → deployment of the nodes on hosts of their own."""
        site = self.machine.site
        return {host.name: self.machine.deployment(self.settings.sut, host) for host in site.nodes[1:]}

    def deployment_of(self, node: Node) -> Deployment:
        """Return the deployment of a node on its host."""
        return self._other_deployments.get(self.machine.site.host_of(node.number).name, self.sut_deployment)

    @cached_property
    def client_deployment(self) -> Deployment:
        """Deployment of the clients; for a workload that is itself the SUT, the SUT's."""
        if self.settings.client is None:
            return self.sut_deployment
        return self.machine.deployment(self.settings.client, self.machine.site.client)

    def data_dir(self, node: Node) -> str:
        """Return the path of a node's data directory as the node sees it."""
        own_root = self.sut_deployment.own_root
        return (self.images.sut.config.data_dir or _DATA_DIR) if own_root else self.data_mount_of(node).source

    def cgroup_parent(self, host: Host) -> str:
        """Common cgroup parent of all that the attempt starts on a host, so that equal arms get equal weights."""
        return group_of(self.group, self.machine.ledger_on(host).owner_on(host.name))

    @property
    def group(self) -> str:
        """End of the cgroup parent's name: the token of the attempt that started the server."""
        return self.first_token or self.token

    def server_plan(self, node: Node, run_dir: str, first: Instance | None = None) -> ServerPlan:
        """Describe how a node is to run. `run_dir`: its run directory on the host; `first`: the first node."""
        sut, own_root = self.settings.sut, self.sut_deployment.own_root
        alone = ServerPlan(
            data_dir=self.data_dir(node),
            run_dir=_RUN_DIR if own_root else run_dir,
            listen=self._listen_address(node) if sut.network in IN_HOST else _ANY,
            port=self.ports[0],
            settings=sut.settings,
            secrets=self.secrets,
            log_file=f"{_RUN_DIR if own_root else run_dir}/{LOG_FILE}" if sut.log_target == "file" else None,
            socket=socket_of(sut, run_dir, self.ports[0], own_root=own_root),
        )
        if sut.nodes == 1:
            return alone
        own = self._address(node)
        seed = own if first is None else first.address
        peer_port = self.ports[-1] if self.machine.site.nodes else None
        member = Member(node.number, sut.nodes, seed, self.ports[node.number - 1], peer_port)
        return replace(alone, listen=own, member=member)

    def start_sut(self) -> Sut:
        """Start the first node; the others start in turn in `Sut.wait_until_ready`."""
        first, *others = self.nodes
        cluster = self.machine.clusters[self.settings.sut.database or ""] if others else None
        return Sut([self.start_server(first)], [self._starter(node) for node in others], cluster)

    def start_server(self, node: Node, first: Instance | None = None, *, initialise: bool = False) -> Server:
        """Start a node on its data directory, or with `initialise` the command that fills an empty one."""
        sut, image, workdir = self.settings.sut, self.images.of_node(node.number), self.workdir_of(node)
        host, deployment = workdir.host, self.deployment_of(node)
        plan = self.server_plan(node, f"{workdir.path}/{node.name}", first)
        command = self.database.initialise(plan) if initialise else self.database.serve(plan)
        run_dir = self._run_dir(node.name, command, image, workdir)
        task = replace(
            self._task(node.name, sut, image, command, workdir),
            binds=(Bind(run_dir, plan.run_dir), *bind_for_server(plan, run_dir, workdir, image)),
            port=plan.port,
            socket=plan.socket,
            log_driver=sut.log_driver,
            listen=plan.listen if plan.member is not None else self._listen_address(node),
            publish_at=self.machine.address_of(host) if self.client_workdir is not None else None,
            lan=self.machine.lan(sut),
            machine=machine_of(sut.vm),
            pod=pod_of(sut.pod),
        )
        task = self.data_mount_of(node).add_to(task, plan.data_dir)
        before = oom_kills(host)
        try:
            instance = deployment.start(task)
        except EndedAtOnce as error:  # seen to end now or a moment later: reported alike
            raise server_gone(node, f"the server ended with {error.how}", BEFORE_AN_ANSWER, error.words) from error
        return Server(host, deployment, self.database, plan, node, instance, before)

    def client_run_dir(self, name: str) -> str:
        """Return the run directory of a client as the client sees it."""
        return _RUN_DIR if self.client_deployment.own_root else f"{self.workdir_for_client.path}/{name}"

    def start_client(self, name: str, command: ClientCommand, sut: Sut | None) -> Client:
        """Start a client of a running SUT; without a SUT, start the program that is itself the SUT, on its data."""
        if sut is None:
            return self._start_program(name, command)
        client, image = self.settings.client, self.images.client
        assert client is not None and image is not None  # noqa: S101, PT018 - a server is there for its client
        run_dir = self._run_dir(name, command, image, self.workdir_for_client)
        own_root = self.client_deployment.own_root
        task = replace(
            self._task(name, client, image, command, self.workdir_for_client),
            binds=(Bind(run_dir, self.client_run_dir(name)), *bind_for_client(sut.first, own_root=own_root)),
            beside=sut.first.instance if client.network is NetworkKind.SHARED else None,
        )
        return started(self.machine.site.client, self.client_deployment, task)

    def target(self, sut: Sut | None) -> Target | Files:
        """Return the servers as the client addresses them, or the files of a workload without a server."""
        if sut is None:
            return Files(self.data_dir(self.nodes[0]))
        _, *others = sut.servers
        return Target(
            database=self.settings.sut.database or "",
            endpoint=address_of(sut.first.instance, self.settings),
            secrets=self.secrets,
            others=tuple(server.instance.address for server in others),
            socket=socket_for_client(sut.first, own_root=self.client_deployment.own_root),
        )

    def _starter(self, node: Node) -> Starter:
        return lambda first: self.start_server(node, first)

    def _address(self, node: Node) -> str:
        """Address of a member, or a name for it, which engines put into /etc/hosts of its container."""
        if self.settings.sut.network is not NetworkKind.HOST:
            return self._task_name(node.name)
        return self._listen_address(node) if self.machine.site.nodes else node_address(self.ports[0], node.number)

    def _start_program(self, name: str, command: ClientCommand) -> Client:
        image = self.images.sut
        run_dir = self._run_dir(name, command, image, self.workdir)
        task = replace(
            self._task(name, self.settings.sut, image, command, self.workdir),
            binds=(Bind(run_dir, self.client_run_dir(name)),),
        )
        (node,) = self.nodes
        task = self.data_mount_of(node).add_to(task, self.data_dir(node))
        return started(self.machine.site.sut, self.sut_deployment, task)

    def _listen_address(self, node: Node) -> str:
        """Address that a server in its host's network namespace listens at."""
        if self.client_workdir is None:
            return self.settings.sut.bind or self._address_for_pods or _LOOPBACK
        return self.machine.address_of(self.machine.site.host_of(node.number)) or _LOOPBACK

    @cached_property
    def _address_for_pods(self) -> str | None:
        """Address of a cluster's node, for clients in a pod network and a server in the node's network."""
        client, sut = self.settings.client, self.settings.sut
        if client is None or client.deployment != POD or client.network is not NetworkKind.POD:
            return None
        on_node = sut.network is NetworkKind.HOST
        return address_in_cluster(self.machine.site.sut) if on_node else None

    def _run_dir(
        self, name: str, command: ServerCommand | ClientCommand, image: Image, workdir: WorkDirectory
    ) -> str:
        """Make the command's run directory. The command and the names of its files are kept among the raw files."""
        described = {"argv": command.argv, "env": dict(command.env), "files": dict(command.files)}
        binary = command.binary_files if isinstance(command, ServerCommand) else {}
        if binary:
            described["binary_files"] = sorted(binary)
        workdir.host.put(json.dumps(described, indent=1).encode(), f"{workdir.raw}/{name}.command.json")
        return workdir.run_dir(name, command.files, image, binary)

    def _task_name(self, name: str) -> str:
        return f"tare-{self.token}-{name}"

    def _task(
        self,
        name: str,
        placement: Placement,
        image: Image,
        command: ServerCommand | ClientCommand,
        workdir: WorkDirectory,
    ) -> Task:
        asked = command.workdir if isinstance(command, ClientCommand) else None
        profile = self.files.get(placement.confinement.seccomp)
        return Task(
            name=self._task_name(name),
            image=image,
            argv=command.argv,
            output=workdir.output(name),
            cgroup_parent=self.cgroup_parent(workdir.host),
            env={**dict(image.config.env), **command.env},
            user=image.config.user,
            workdir=asked or image.config.workdir,
            limits=limits_of(placement.limits),
            network=placement.network,
            cgroup=placement.cgroup,
            runtime=placement.runtime,
            sysctls={} if placement is not self.settings.sut else sysctls_of(self.settings.sut.sysctls),
            confinement=Confinement(
                **placement.confinement.model_dump(), seccomp_sha256=profile.sha256 if profile else None
            ),
        )


def client_workdir_for(machine: Machine, settings: ArmSettings, token: str) -> WorkDirectory | None:
    """Return the work directory of clients on their own host; `None` where they share the SUT's or are the SUT."""
    part = machine.client_part
    if part is None or settings.client is None:
        return None
    return WorkDirectory(part.host, f"{part.layout.work}/{token}")


def workdir_on(machine: Machine, host: Host, token: str) -> WorkDirectory:
    """Return an attempt's work directory on one of the site's hosts."""
    return WorkDirectory(host, f"{machine.layout_on(host).work}/{token}")


def other_workdirs(machine: Machine, settings: ArmSettings, token: str) -> tuple[WorkDirectory, ...]:
    """Return the work directories on hosts other than the SUT's (or first node's): other nodes', then clients'."""
    client = client_workdir_for(machine, settings, token)
    nodes = (workdir_on(machine, host, token) for host in machine.site.nodes[1:])
    return (*nodes, *(() if client is None else (client,)))


def ports_for(machine: Machine, settings: ArmSettings, token: str) -> tuple[int, ...]:
    """Find free ports for the SUT's nodes, free on all their hosts: see `RunContext.ports`."""
    first, *others = machine.site.sut_hosts
    return free_ports(first, token, settings.sut.nodes + bool(others), others)


def make_token(*parts: object) -> str:
    """Make an attempt's token, hex digits: always the same for the same store, run and attempt, else different."""
    return hashlib.sha256("/".join(str(part) for part in parts).encode()).hexdigest()[:_TOKEN_DIGITS]


def parameters_of(workload: Workload[Any], settings: ArmSettings, seed: int | None = None) -> Parameters:
    """Return an arm's workload parameters; a missing seed is the run's seed, if the workload takes one."""
    tree: dict[str, Any] = dict(settings.workload)
    if "seed" in workload.parameters.model_fields and tree.get("seed") is None:
        tree["seed"] = seed
    return workload.parameters.model_validate_json(json.dumps(tree))


def address_of(server: Instance, settings: ArmSettings) -> Endpoint:
    """Return the endpoint at which a client of this arm reaches the server."""
    if settings.client is not None and settings.client.network is NetworkKind.SHARED:
        return Endpoint(_LOOPBACK, server.task.port)
    endpoint = server.published or Endpoint(server.address, server.task.port)
    inside = settings.client is not None and settings.client.deployment in MACHINES
    return replace(endpoint, address=HOST_LOOPBACK) if inside and endpoint.address == _LOOPBACK else endpoint
