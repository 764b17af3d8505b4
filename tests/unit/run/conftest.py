"""A machine of fakes: real processes of a small server and its client, no root, no engine."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from tare.databases.registry import DATABASES
from tare.deployments import Endpoint, Instance
from tare.deployments.fake import FakeDeployment
from tare.errors import TareError
from tare.images import Image, ImageConfig
from tare.monitors.fake import FakeMonitor
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.host_facts import HostFacts
from tare.record.network_path import NetworkPath
from tare.record.run_record import RunRecord
from tare.run.events import Event
from tare.run.execute import Destination, execute
from tare.run.machine import EndHosts, HostPart, Machine
from tare.run.parity.declared import promised_hops
from tare.run.resume import StudyState
from tare.sites import Process, Site
from tare.sites.layout import Layout, make_home
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec, ProtocolSpec
from tare.workloads.registry import WORKLOADS

OF_HOST = {each.name for each in fields(HostPart)}


def fake_image(reference: str) -> Image:
    """An image that no fake deployment looks into."""
    digest = hashlib.sha256(reference.encode()).hexdigest()
    return Image(reference, digest, "/", None, ImageConfig())


def make_plan(
    *,
    blocks: int = 1,
    retries: int = 0,
    arms: tuple[str, ...] = ("plain",),
    seed: int = 1,
    protocol: ProtocolSpec | None = None,
    **workload: Any,
) -> Plan:
    """A study of fakes; `settings` and the rest go to the database and to the workload."""
    database = workload.pop("settings", {})
    parameters = {"measure_s": 0.1, "window_s": 0.05, **workload}
    settings = ArmSettings(
        sut=SutSpec(image="tar:fake", deployment="fake", database="fake", settings=database),
        client=ClientSpec(image="tar:fake", deployment="fake"),
        workload_name="fake",
        workload=WORKLOADS["fake"].parameters.model_validate(parameters).model_dump(mode="json"),
    )
    study = Study(
        name="tiny",
        scale="full",
        question="Do the fakes work?",
        source=None,
        arms=tuple(Arm(name=name, levels={"arm": name}, settings=settings) for name in arms),
        baseline=arms[0],
        factors={"arm": arms},
        protocol=protocol or FixedSpec(name="fixed", blocks=blocks, retries=retries, control=False),
        published=(),
        deviations=(),
        text="format: 1\n",
    )
    return expand(study, seed)


@dataclass
class Rig:
    """A machine of fakes, and what was seen of it."""

    machine: Machine
    staging: Path
    events: list[Event] = field(default_factory=list)

    def execute(self, plan: Plan, done: StudyState | None = None) -> list[RunRecord]:
        """All records of a plan."""
        return [
            one for kept in execute(plan, self.machine, self.destination(done), self.events.append) for one in kept
        ]

    def destination(self, done: StudyState | None = None) -> Destination:
        """A store id of its own, as ports and names are made of it: suites may run side by side."""
        return Destination(str(self.staging), done or StudyState(), self.staging)

    def swap(self, **parts: Any) -> None:
        """Put other parts into the machine, or into that of its one host."""
        of_host = {name: parts.pop(name) for name in OF_HOST & set(parts)}
        self.machine = replace(self.machine, own=replace(self.machine.own, **of_host), **parts)

    @property
    def leftovers(self) -> list[str]:
        """What stands in the ledger but for caches, and what lies in the work directory."""
        work = self.machine.layout.work
        paths = [str(path) for path in work.iterdir()] if work.is_dir() else []
        return [entry.ident for entry in self.machine.ledger.entries() if not entry.keep] + paths


def as_promised(server: Instance, client: Instance, hosts: EndHosts) -> NetworkPath:
    """The path that the networks of both sides promise."""
    del hosts
    hop = min(promised_hops(server.task.network, client.task.network))
    return NetworkPath(hop, client_dialled=Endpoint(server.address, server.task.port))


def make_rig(directory: Path) -> Rig:
    """A machine whose every part works, with all it makes below `directory`."""
    layout = Layout(directory / "home")
    host = LocalHost()
    machine = Machine(
        site=Site(sut=host, client=host),
        own=HostPart(
            host=host,
            layout=layout,
            ledger=SqliteLedger(layout.ledger),
            engine=None,
            prepare=fake_image,
            host_facts=lambda: HostFacts(name="test"),
            engine_facts=lambda: None,
        ),
        deployments={"fake": FakeDeployment},
        databases=DATABASES,
        workloads=WORKLOADS,
        monitors={"probe": FakeMonitor()},
        observe_path=as_promised,
        sweep=tuple,
        set_cpus=lambda instance, cpus: None,
    )
    staging = directory / "staging"
    staging.mkdir()
    return Rig(machine, staging)


@contextmanager
def a_rig(directory: Path, loaded: Path | None = None) -> Iterator[Rig]:
    """A machine, with snapshots like those of `loaded`. No process of it remains, however a test ends."""
    made = make_rig(directory)
    ledger, home = made.machine.ledger, made.machine.layout.home
    if loaded is not None:
        make_home(home)
        subprocess.run(["cp", "-a", "--", loaded, home], check=True)
    try:
        yield made
    finally:
        with suppress(TareError):  # a test may have damaged it
            _end(from_ident(entry.ident) for entry in ledger.entries() if entry.kind is Kind.PROCESS)


def _end(processes: Iterable[Process]) -> None:
    for process in processes:
        if alive(LocalHost(), process):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snapshots that a run of the plainest plan makes."""
    with a_rig(tmp_path_factory.mktemp("loaded")) as rig:
        rig.execute(make_plan())
        return rig.machine.layout.snapshots


@pytest.fixture
def empty_rig(tmp_path: Path) -> Iterator[Rig]:
    """A machine on which nothing was loaded yet."""
    with a_rig(tmp_path) as made:
        yield made


@pytest.fixture
def rig(tmp_path: Path, loaded: Path) -> Iterator[Rig]:
    """A machine that has the data of the plainest plan loaded already."""
    with a_rig(tmp_path, loaded) as made:
        yield made


@pytest.fixture(scope="session")
def rigs(tmp_path_factory: pytest.TempPathFactory, loaded: Path) -> Iterator[Callable[[], Rig]]:
    """Makes such machines for what is run once and looked at by several tests."""
    with ExitStack() as made:
        yield lambda: made.enter_context(a_rig(tmp_path_factory.mktemp("rig"), loaded))


Plans = Callable[..., Plan]


@pytest.fixture(scope="session")
def plans() -> Plans:
    """Makes plans of fakes."""
    return make_plan
