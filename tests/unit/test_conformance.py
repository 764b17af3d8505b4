"""The conformance suite of plug-ins, on every built-in one, and on some that break it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.fake import FakeDatabase
from tare.databases.registry import BUILT_IN as DATABASES
from tare.deployments.bare.bare import Bare
from tare.deployments.container.container import Container
from tare.deployments.containerd.containerd import Containerd
from tare.deployments.fake import FakeDeployment
from tare.deployments.vm.vm import Vm
from tare.monitors import MonitorContext, Program
from tare.monitors.fake import FakeMonitor
from tare.monitors.registry import BUILT_IN as MONITORS
from tare.sites import Completed, Host
from tare.sites.binaries import PROBE, candidates
from tare.sites.fake import FakeHost
from tare.testing import (
    DatabaseConformance,
    DeploymentConformance,
    MonitorConformance,
    OutputConformance,
    WorkloadConformance,
)
from tare.workloads import Measurement, Parameters
from tare.workloads.fake import FakeWorkload
from tare.workloads.registry import BUILT_IN as WORKLOADS

DATA = Path(__file__).parents[1] / "data"
PARAMETERS: dict[str, dict[str, Any]] = {
    "tare-load": {
        "measure_s": 10.0,
        "job": {
            "operations": ({"name": "get", "steps": ({"send": "GET a"},)},),
            "load": {"records": 1, "steps": ({"send": "SET a b"},)},
        },
    },
    "fio": {"measure_s": 10.0, "rw": "randread"},
    "sysbench-fileio": {"measure_s": 10.0, "file_test_mode": "rndrw"},
}


DRIVES = {"cassandra-stress": "cassandra", "tare-load": "redis"}


class TestDatabases(DatabaseConformance):
    @pytest.fixture(autouse=True, params=sorted(DATABASES))
    def _one(self, request: pytest.FixtureRequest) -> None:
        type(self).database = DATABASES[request.param]


class TestWorkloads(WorkloadConformance):
    @pytest.fixture(autouse=True, params=sorted(WORKLOADS))
    def _one(self, request: pytest.FixtureRequest) -> None:
        type(self).workload = WORKLOADS[request.param]
        type(self).drives = DRIVES.get(request.param, "mariadb")
        type(self).parameters = PARAMETERS.get(request.param, {"measure_s": 10.0})


class TestSysbenchOutput(OutputConformance):
    workload = WORKLOADS["sysbench"]
    parameters: ClassVar[dict[str, Any]] = {"measure_s": 4.0}
    output = (DATA / "sysbench" / "closed.stdout").read_bytes().decode()


class TestMonitors(MonitorConformance):
    name: ClassVar[str] = ""

    @property
    def host(self) -> Host:
        """The probe's programs are what of its own is installed; all others' are the same anywhere."""
        if self.name not in ("probe", "profile"):
            return super().host
        proof = Completed((), 0, PROBE.proof.encode())
        return FakeHost(answers={(path,): proof for path in candidates(PROBE)})

    @pytest.fixture(autouse=True, params=sorted(MONITORS))
    def _one(self, request: pytest.FixtureRequest) -> None:
        type(self).monitor, type(self).name = MONITORS[request.param], request.param


class TestDeployments(DeploymentConformance):
    @pytest.fixture(autouse=True, params=(Bare, Container, Containerd, FakeDeployment, Vm))
    def _one(self, request: pytest.FixtureRequest) -> None:
        type(self).deployment = request.param


class TestTheSuiteItself:
    """Each check fails on what it is there for."""

    def test_a_password_in_the_arguments(self) -> None:
        class Leaks(FakeDatabase):
            def serve(self, plan: ServerPlan) -> ServerCommand:
                return ServerCommand(("serve", f"--password={plan.secrets.password}"), {}, {})

        with pytest.raises(AssertionError, match="password is in argv"):
            of(DatabaseConformance, database=Leaks()).test_commands_are_argument_lists()

    def test_a_text_for_a_shell(self) -> None:
        class Shell(FakeDatabase):
            def serve(self, plan: ServerPlan) -> ServerCommand:
                return replace(super().serve(plan), argv="serve --fast")  # type: ignore[arg-type]  # what is tested

        with pytest.raises(AssertionError, match="never one text for a shell"):
            of(DatabaseConformance, database=Shell()).test_commands_are_argument_lists()

    def test_a_clock_in_a_command(self) -> None:
        class Clock(FakeDatabase):
            def serve(self, plan: ServerPlan) -> ServerCommand:
                return replace(super().serve(plan), argv=("serve", str(time.monotonic_ns())))

        with pytest.raises(AssertionError, match="must depend only on the plan"):
            of(DatabaseConformance, database=Clock()).test_commands_are_the_same_each_time()

    def test_a_process_that_a_describing_method_starts(self) -> None:
        class Starts(FakeDatabase):
            def serve(self, plan: ServerPlan) -> ServerCommand:
                subprocess.run(["true"], check=True)
                return super().serve(plan)

        with pytest.raises(AssertionError, match=r"called subprocess\.Popen"):
            of(DatabaseConformance, database=Starts()).test_commands_are_argument_lists()

    def test_a_server_that_is_ready_without_an_answer(self) -> None:
        class Ready(FakeDatabase):
            def ready(self, plan: ServerPlan, inside: Exec) -> bool:
                inside(("true",), 1.0, b"")
                return True

        with pytest.raises(AssertionError, match="ready must be False"):
            of(DatabaseConformance, database=Ready()).test_a_server_that_answers_nothing_is_not_ready()

    def test_a_parser_that_takes_anything(self) -> None:
        class Trusting(FakeWorkload):
            def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
                raise ValueError("Expecting value")

        with pytest.raises(AssertionError, match="must raise RunFailed with a sentence"):
            of(WorkloadConformance, workload=Trusting()).test_no_output_is_no_measurement()

    def test_a_monitor_that_asks_the_host(self) -> None:
        class Asks(FakeMonitor):
            def programs(self, context: MonitorContext) -> tuple[Program, ...]:
                context.host.read("/proc/stat")
                return super().programs(context)

        with pytest.raises(AssertionError, match="read /proc/stat on the host"):
            of(MonitorConformance, monitor=Asks()).test_programs_are_argument_lists()


S = TypeVar("S")


def of(suite: type[S], **attributes: Any) -> S:
    """The suite for one implementation."""
    return type("Suite", (suite,), attributes)()  # type: ignore[no-any-return]  # made of what was given
