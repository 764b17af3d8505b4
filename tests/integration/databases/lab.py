"""A real server, MariaDB where nothing else is said, under any load generator, for integration tests."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.databases.registry import DATABASES
from tare.deployments import Deployment, Instance
from tare.deployments.registry import DEPLOYMENTS
from tare.images.prepare import prepare
from tare.record.host_facts import HostFacts
from tare.run.attempt.client import Client
from tare.run.attempt.context import Images, RunContext, parameters_of
from tare.run.attempt.directory import WorkDirectory, clear_work_directory, make_work_directory
from tare.run.attempt.loading import check_output_of, ensure_snapshot
from tare.run.attempt.ports import free_ports
from tare.run.attempt.raw_files import new_secrets
from tare.run.attempt.server import Node, Server, Sut
from tare.run.attempt.snapshot import Snapshot, copy_snapshot
from tare.run.machine import HostPart, Machine
from tare.sites import Site
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import ArmSettings, ClientSpec, SutSpec
from tare.study.values import NetworkKind
from tare.workloads import ClientCommand, Measurement, output_path
from tare.workloads.registry import WORKLOADS

SETTINGS: Mapping[str, str | int | float | bool] = {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M"}


@dataclass(frozen=True)
class DatabaseLab:
    """A machine whose snapshots last for one test module, with images from the tests' cache."""

    machine: Machine
    images: Images
    workload: str
    client_image: str
    sut_image: str = "mariadb"
    database: str = "mariadb"
    server: Mapping[str, str | int | float | bool] = field(default_factory=lambda: SETTINGS)

    def settings(self, sut: str, client: str, network: NetworkKind = NetworkKind.HOST, **asked: Any) -> ArmSettings:
        """`network`: the client's; one in the SUT's namespace has the SUT on a bridge."""
        inside = network is NetworkKind.SHARED
        return ArmSettings(
            sut=SutSpec(
                image=self.sut_image,
                deployment=sut,
                database=self.database,
                settings=self.server,
                network=NetworkKind.BRIDGE if inside else NetworkKind.HOST,
            ),
            client=ClientSpec(image=self.client_image, deployment=client, network=network),
            workload_name=self.workload,
            workload=asked,
        )

    @contextmanager
    def run(self, settings: ArmSettings) -> Iterator[LabRun]:
        """A served copy of the loaded data, removed afterwards."""
        snapshot = ensure_snapshot(self.machine, settings, self.images)
        token, host = uuid4().hex[:12], self.machine.site.sut
        workdir = WorkDirectory(host, f"{self.machine.layout.work}/{token}")
        make_work_directory(workdir, self.machine.ledger)
        ports = free_ports(host, token, settings.sut.nodes)
        made = LabRun(RunContext(self.machine, settings, self.images, workdir, token, ports, new_secrets()))
        try:
            for node in made.bench.nodes:
                made.copy(snapshot, node)
            made.sut.wait_until_ready(self.machine.clock)
            yield made
        finally:
            made.close()


@dataclass
class LabRun:
    """One bench in use."""

    bench: RunContext
    running: list[tuple[Deployment, Instance]] = field(default_factory=list)
    _sut: Sut | None = None

    @property
    def sut(self) -> Sut:
        if self._sut is None:
            self._sut = self.bench.start_sut()
        return self._sut

    @property
    def server(self) -> Server:
        return self.sut.first

    def copy(self, snapshot: Snapshot, node: Node) -> None:
        host, path = self.bench.workdir.host, node.below(self.bench.workdir.data)
        host.run(
            ["mkdir", "-p", "--", self.bench.workdir.data if node.part else self.bench.workdir.path], timeout_s=60
        )
        copy_snapshot(host, snapshot, path, node.part)

    def start(self, name: str) -> tuple[Client, ClientCommand]:
        """`warm-up` or `measure`."""
        bench = self.bench
        parameters = parameters_of(bench.workload, bench.settings)
        describe = {"warm-up": bench.workload.warm_up, "measure": bench.workload.measure}[name]
        command = describe(parameters, bench.target(self.sut), bench.client_run_dir(name))
        assert command is not None
        client = bench.start_client(name, command, self.sut)
        self.running.append((client.deployment, client.instance))
        return client, command

    def carry_out(self, name: str) -> int:
        client, command = self.start(name)
        code = client.wait(self.bench.machine.clock, command.timeout_s, lambda: None)
        if name != "measure":
            check_output_of(self.bench, name, command)
        client.stop()
        return code

    def parse(self, code: int, out: Path) -> Measurement:
        output = self.bench.workdir.output("measure")
        self.bench.workdir.host.get(output.stdout, out / "stdout")
        self.bench.workdir.host.get(output.stderr, out / "stderr")
        for name in ("latency.hdr", "latency.hlog"):
            self.bench.workdir.bring(f"measure/{name}", output_path(out / "stdout", name))
        parameters = parameters_of(self.bench.workload, self.bench.settings)
        return self.bench.workload.parse(parameters, out / "stdout", out / "stderr", code)

    def measure(self, out: Path) -> Measurement:
        return self.parse(self.carry_out("measure"), out)

    def stall(self, after_s: float, seconds: float) -> threading.Timer:
        """Stop the server's process for so long, so long from now."""
        pid = self.server.instance.process.pid

        def stop() -> None:
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()

        timer = threading.Timer(after_s, stop)
        timer.start()
        return timer

    def close(self) -> None:
        if self._sut is not None and self._sut.first.lives:
            os.kill(self._sut.first.instance.process.pid, signal.SIGCONT)
        for deployment, instance in reversed(self.running):
            deployment.stop(instance, 1.0)
        if self._sut is not None:
            self._sut.stop(1.0)
        clear_work_directory(self.bench.workdir, self.bench.machine.ledger)


def make_lab(
    engine: DockerClient, home: Path, workload: str, client_image: str, sut_image: str = "mariadb", **more: Any
) -> DatabaseLab:
    """Images come from the tests' cache and are made where they are not there yet, which for YCSB takes Maven."""
    if client_image == "ycsb" and which("mvn") is None and os.environ.get("CI") != "true":
        pytest.skip("the image ycsb is built by mvn (apt-get install maven default-jdk-headless)")
    host, cache = LocalHost(), default_layout()
    image_store = SqliteLedger(cache.ledger)
    sut, client = (
        prepare(name, host=host, layout=cache, ledger=image_store, engine=engine)
        for name in (sut_image, client_image)
    )
    layout = Layout(home)
    machine = Machine(
        site=Site(sut=host, client=host),
        own=HostPart(
            host=host,
            layout=layout,
            ledger=SqliteLedger(layout.ledger),
            engine=engine,
            prepare=lambda _: sut,
            host_facts=HostFacts,
            engine_facts=lambda: None,
        ),
        deployments=DEPLOYMENTS,
        databases=DATABASES,
        workloads=WORKLOADS,
        observe_path=lambda _server, _client, _host: None,
        sweep=lambda: (),
    )
    return DatabaseLab(machine, Images(sut, client), workload, client_image, sut_image, **more)
