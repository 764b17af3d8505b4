"""The fake database and the fake workload together, as plain processes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.fake import FakeDatabase
from tare.deployments import Endpoint
from tare.errors import RunFailed
from tare.sites import Completed, Output, Process
from tare.sites.local import LocalHost
from tare.sites.process import alive
from tare.workloads import ClientCommand, Target
from tare.workloads.fake import FakeParameters, FakeWorkload

DATABASE, WORKLOAD = FakeDatabase(), FakeWorkload()
SECRETS = Secrets(user="tare", password="a word")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A fake server and the directories around it."""

    root: Path
    host: LocalHost
    plan: ServerPlan
    process: Process | None = None

    def inside(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        return self.host.run(argv, timeout_s=timeout_s, stdin=stdin, check=False)

    def initialise(self) -> Completed:
        return self.inside(DATABASE.initialise(self.plan).argv, 10, b"")

    def start(self) -> None:
        command = DATABASE.serve(self.plan)
        self.put(command.files)
        output = Output(str(self.root / "sut.out"), str(self.root / "sut.err"))
        self.process = self.host.start(command.argv, output=output)
        deadline = time.monotonic() + 60
        while not DATABASE.ready(self.plan, self.inside):
            assert time.monotonic() < deadline

    def client(self, command: ClientCommand) -> int:
        self.put(command.files)
        done = self.host.run(command.argv, timeout_s=command.timeout_s, check=False)
        (self.root / "out").write_bytes(done.stdout)
        (self.root / "err").write_bytes(done.stderr)
        return done.code

    def put(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            (self.root / name).write_text(content)

    @property
    def target(self) -> Target:
        return Target("fake", Endpoint("127.0.0.1", self.plan.port), self.plan.secrets)


def make(root: Path, **settings: str | int) -> Server:
    (root / "data").mkdir()
    plan = ServerPlan(str(root / "data"), str(root), "127.0.0.1", free_port(), settings, SECRETS)
    return Server(root, LocalHost(), plan)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = make(tmp_path)
    assert made.initialise().code == 0
    made.start()
    yield made
    assert made.process is not None
    if alive(made.host, made.process):
        made.host.run(["kill", "--", f"-{made.process.pid}"], timeout_s=60, check=False)


def test_a_whole_life(server: Server) -> None:
    parameters = FakeParameters(warmup_s=0.05, measure_s=0.3, window_s=0.1, rows=7)
    assert server.client(WORKLOAD.load(parameters, server.target, str(server.root))) == 0
    warm_up = WORKLOAD.warm_up(parameters, server.target, str(server.root))
    assert warm_up is not None
    assert server.client(warm_up) == 0
    code = server.client(WORKLOAD.measure(parameters, server.target, str(server.root)))
    measurement = WORKLOAD.parse(parameters, server.root / "out", server.root / "err", code)
    assert measurement.operations == sum(count for _, count in measurement.histogram) > 10
    assert measurement.latency.p50_ms is not None
    assert measurement.latency.p50_ms >= 1.0
    assert len(measurement.windows) == 3
    DATABASE.shutdown(server.plan, server.inside)
    assert server.process is not None
    deadline = time.monotonic() + 60
    while alive(server.host, server.process):
        assert time.monotonic() < deadline
    assert (server.root / "data" / "rows").read_text() == "7"


def test_settings_are_read_back(server: Server) -> None:
    assert DATABASE.effective(server.plan, server.inside) == {"port": str(server.plan.port)}


def test_a_wrong_password_is_refused(server: Server) -> None:
    stranger = Target("fake", server.target.endpoint, Secrets("tare", "another"))
    assert server.client(WORKLOAD.load(FakeParameters(measure_s=1), stranger, str(server.root))) != 0


def test_a_data_directory_in_use_is_not_initialised_again(server: Server) -> None:
    assert server.initialise().code != 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "told to crash"),
        ("errors", "1 wrong answers"),
        ("no-events", "no events"),
        ("cut-short", "cut short"),
    ],
)
def test_each_fault_fails_the_run(server: Server, fault: str, reason: str) -> None:
    parameters = FakeParameters.model_validate({"measure_s": 0.1, "fault": fault})
    assert server.client(WORKLOAD.load(parameters, server.target, str(server.root))) == 0
    code = server.client(WORKLOAD.measure(parameters, server.target, str(server.root)))
    with pytest.raises(RunFailed, match=reason):
        WORKLOAD.parse(parameters, server.root / "out", server.root / "err", code)


def test_a_fault_passes_after_its_times(server: Server) -> None:
    parameters = FakeParameters(measure_s=0.05, fault="crash", fault_log=str(server.root / "faults"))
    assert server.client(WORKLOAD.load(parameters, server.target, str(server.root))) == 0
    command = WORKLOAD.measure(parameters, server.target, str(server.root))
    assert [server.client(command) == 0 for _ in range(3)] == [False, True, True]


def test_data_that_was_not_loaded_is_an_error_not_speed(server: Server) -> None:
    parameters = FakeParameters(measure_s=0.05, rows=7)
    code = server.client(WORKLOAD.measure(parameters, server.target, str(server.root)))
    with pytest.raises(RunFailed, match="wrong answers"):
        WORKLOAD.parse(parameters, server.root / "out", server.root / "err", code)


def test_no_secret_is_in_an_argument(server: Server) -> None:
    command = WORKLOAD.measure(FakeParameters(measure_s=1), server.target, str(server.root))
    words = (*command.argv, *DATABASE.serve(server.plan).argv, *DATABASE.initialise(server.plan).argv)
    assert not any(SECRETS.password in word for word in words)


def test_the_first_step_can_be_told_to_fail(tmp_path: Path) -> None:
    assert b"told to fail" in make(tmp_path, fault="initialise").initialise().stderr
