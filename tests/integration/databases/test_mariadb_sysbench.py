"""MariaDB and sysbench, really: from an empty directory to a parsed measurement, bare and in a container."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.databases import Secrets
from tare.databases.registry import DATABASES
from tare.deployments import Deployment, Instance
from tare.deployments.registry import DEPLOYMENTS
from tare.errors import RunFailed
from tare.images.prepare import prepare
from tare.record.host_facts import HostFacts
from tare.run.attempt.context import Images, RunContext, parameters_of
from tare.run.attempt.directory import WorkDirectory, clear_work_directory, make_work_directory
from tare.run.attempt.loading import ensure_snapshot, load_data
from tare.run.attempt.ports import free_ports
from tare.run.attempt.raw_files import new_secrets
from tare.run.attempt.server import Server, Sut
from tare.run.attempt.snapshot import copy_snapshot
from tare.run.attempt.teardown import Teardown
from tare.run.machine import HostPart, Machine
from tare.sites import Site
from tare.sites.engine import connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import ArmSettings, ClientSpec, SutSpec
from tare.workloads import Measurement
from tare.workloads.registry import WORKLOADS

pytestmark = pytest.mark.engine

ROWS, TABLES, WINDOWS = 1000, 2, 2
ASKED: Mapping[str, Any] = {
    "script": "oltp_read_only", "tables": TABLES, "table_size": ROWS, "threads": 4, "warmup_s": 1,
    "measure_s": WINDOWS, "window_s": 1, "seed": 1,
}  # fmt: skip
SETTINGS: Mapping[str, str | int | float | bool] = {
    "innodb_buffer_pool_size": "32M",
    "innodb-log-file-size": "8M",
    "init_connect": "SET @note = 1; # quoted, and not a comment",
}


@dataclass
class Lab:
    """A machine whose snapshots and work last for one module, with images from the tests' cache."""

    machine: Machine
    images: Images

    def own_snapshots(self, name: str) -> Lab:
        """The same machine with snapshots of its own, as the deployment that loaded is no part of their key."""
        layout = Layout(self.machine.layout.home / name)
        own = replace(self.machine.own, layout=layout, ledger=SqliteLedger(layout.ledger))
        return replace(self, machine=replace(self.machine, own=own))

    def settings(self, deployment: str, **workload: Any) -> ArmSettings:
        return ArmSettings(
            sut=SutSpec(image="mariadb", deployment=deployment, database="mariadb", settings=SETTINGS),
            client=ClientSpec(image="sysbench", deployment=deployment),
            workload_name="sysbench",
            workload={**ASKED, **workload},
        )


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    host, cache = LocalHost(), default_layout()
    cache_ledger = SqliteLedger(cache.ledger)
    sut, client = (
        prepare(name, host=host, layout=cache, ledger=cache_ledger, engine=engine)
        for name in ("mariadb", "sysbench")
    )
    images = Images(sut, client)
    layout = Layout(tmp_path_factory.mktemp("home"))
    machine = Machine(
        site=Site(sut=host, client=host),
        own=HostPart(
            host=host,
            layout=layout,
            ledger=SqliteLedger(layout.ledger),
            engine=engine,
            prepare=lambda _: images.sut,
            host_facts=HostFacts,
            engine_facts=lambda: None,
        ),
        deployments=DEPLOYMENTS,
        databases=DATABASES,
        workloads=WORKLOADS,
        observe_path=lambda _server, _client, _host: None,
        sweep=lambda: (),
    )
    return Lab(machine, images)


@dataclass
class Run:
    """One bench in use; `close` stops and removes all of it."""

    bench: RunContext
    running: list[tuple[Deployment, Instance]]
    sut: Sut | None = None

    def serve(self) -> Server:
        self.sut = self.bench.start_sut()
        self.running.append((self.sut.first.deployment, self.sut.first.instance))
        self.sut.wait_until_ready(self.bench.machine.clock)
        return self.sut.first

    def measure(self, out: Path) -> Measurement:
        bench, parameters = self.bench, parameters_of(self.bench.workload, self.bench.settings)
        target = bench.target(self.sut)
        for name, describe in (("warm-up", bench.workload.warm_up), ("measure", bench.workload.measure)):
            command = describe(parameters, target, bench.client_run_dir(name))
            assert command is not None
            client = bench.start_client(name, command, self.sut)
            self.running.append((client.deployment, client.instance))
            code = client.wait(bench.machine.clock, command.timeout_s, lambda: None)
            client.stop()
        stdout, stderr = out / "stdout", out / "stderr"
        bench.workdir.host.get(bench.workdir.output("measure").stdout, stdout)
        bench.workdir.host.get(bench.workdir.output("measure").stderr, stderr)
        return bench.workload.parse(parameters, stdout, stderr, code)

    def close(self) -> None:
        for deployment, instance in reversed(self.running):
            deployment.stop(instance, 1.0)
        clear_work_directory(self.bench.workdir, self.bench.machine.ledger)


def make_run(lab: Lab, settings: ArmSettings, secrets: Secrets) -> Run:
    token = uuid4().hex[:12]
    host = lab.machine.site.sut
    workdir = WorkDirectory(host, f"{lab.machine.layout.work}/{token}")
    make_work_directory(workdir, lab.machine.ledger)
    ports = free_ports(host, token)
    return Run(RunContext(lab.machine, settings, lab.images, workdir, token, ports, secrets), [])


@pytest.fixture(params=["bare", "container"])
def run(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Run]:
    """A run on a copy of the snapshot that the same deployment initialised and loaded."""
    lab, settings = lab.own_snapshots(request.param), lab.settings(request.param)
    snapshot = ensure_snapshot(lab.machine, settings, lab.images)
    made = make_run(lab, settings, new_secrets())
    try:
        copy_snapshot(made.bench.workdir.host, snapshot, made.bench.workdir.data)
        yield made
    finally:
        made.close()


def ask(server: Server, *argv: str) -> str:
    """What the client program prints inside the server's root."""
    done = server.inside(["mariadb", f"--defaults-file={server.plan.run_dir}/client.cnf", *argv], 10, b"")
    assert done.code == 0, done.stderr
    return done.text


def test_loaded_data_is_served_measured_and_stopped(run: Run, tmp_path: Path) -> None:
    server = run.serve()
    measurement = run.measure(tmp_path)
    assert measurement.operations == sum(count for _, count in measurement.histogram) > 100
    assert measurement.queries_per_s is not None
    assert measurement.queries_per_s == pytest.approx(16 * (measurement.throughput_per_s or 0))
    snapshots = Path(run.bench.machine.layout.snapshots).glob("*/snapshot.json")
    made_by = [json.loads(path.read_text())["made_by"]["sut"]["deployment"] for path in snapshots]
    assert made_by == [run.bench.settings.sut.deployment]
    assert WINDOWS - 1 <= len(measurement.windows) <= WINDOWS + 1
    assert (measurement.errors, measurement.reconnects) == (0, 0)
    for number in range(1, TABLES + 1):
        count = ask(server, "--skip-column-names", f"--execute=SELECT COUNT(*) FROM tare.sbtest{number}")
        assert int(count) == ROWS
    server.shut_down()


def test_settings_are_in_force(run: Run) -> None:
    effective = run.serve().effective()
    assert effective["innodb_buffer_pool_size"] == str(32 << 20)
    assert effective["innodb_log_file_size"] == str(8 << 20)
    assert effective["init_connect"] == SETTINGS["init_connect"]
    assert effective["bind_address"] == "127.0.0.1"


def test_the_password_is_seen_nowhere(run: Run) -> None:
    server = run.serve()
    password = run.bench.secrets.password.encode()
    for commands in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert password not in commands.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    assert Path(f"{run.bench.workdir.path}/sut/init.sql").stat().st_mode & 0o777 == 0o600
    server.shut_down()
    kept = [path for path in Path(run.bench.workdir.data).rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if password in path.read_bytes()]


def test_nobody_gets_in_over_tcp_without_a_password(run: Run) -> None:
    server = run.serve()
    for user in ("root", "mysql", "tare", ""):
        address = ("--protocol=tcp", "--host=127.0.0.1", f"--port={server.plan.port}", f"--user={user}")
        done = server.inside(["mariadb", "--no-defaults", *address, "--execute=SELECT 1"], 10, b"")
        assert done.code != 0
        assert b"Access denied" in done.stderr
    users = ask(server, "--skip-column-names", "--execute=SELECT DISTINCT User FROM mysql.global_priv ORDER BY 1")
    assert users.split() == ["mariadb.sys", "mysql", "root", "tare"]
    assert "test" not in ask(server, "--skip-column-names", "--execute=SHOW DATABASES").split()


def test_a_load_into_tables_that_are_there_fails(run: Run) -> None:
    teardown = Teardown()
    run.serve()
    try:
        with pytest.raises(RunFailed, match="already exists"):
            load_data(run.bench, run.sut, teardown)
    finally:
        teardown.run()


def test_the_deployments_differ_in_no_setting_that_matters(lab: Lab) -> None:
    effective = {}
    for deployment in ("bare", "container"):
        settings = lab.settings(deployment)
        run = make_run(lab, settings, new_secrets())
        try:
            snapshot = ensure_snapshot(lab.machine, settings, lab.images)
            copy_snapshot(run.bench.workdir.host, snapshot, run.bench.workdir.data)
            effective[deployment] = dict(run.serve().effective())
        finally:
            run.close()
    bare, container = effective["bare"], effective["container"]
    assert bare.keys() == container.keys()
    differing = {name for name in bare if bare[name] != container[name]}
    assert differing <= DATABASES["mariadb"].per_run


def test_a_wrong_setting_ends_the_server_with_its_reason(lab: Lab) -> None:
    settings = lab.settings("bare")
    wrong = settings.model_copy(update={"sut": settings.sut.model_copy(update={"settings": {"no_such_thing": 1}})})
    with pytest.raises(RunFailed, match="unknown variable 'no_such_thing=1'"):
        ensure_snapshot(lab.machine, wrong, lab.images)
