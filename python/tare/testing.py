"""Conformance tests for authors of plug-ins; the built-in ones pass them too. See docs/guides/plugins.md.

Derive a class whose name begins with `Test`, set its attributes, and pytest collects the inherited tests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest.mock import patch

from pydantic import ValidationError

from tare.databases import Database, Exec, Secrets, ServerCommand, ServerPlan
from tare.deployments import Deployment, Endpoint
from tare.deployments.registry import DeploymentFactory
from tare.errors import RunFailed, TareError
from tare.monitors import Monitor, MonitorContext, WatchedProcess
from tare.plugins import breach_of, breach_of_factory
from tare.sites import Completed, Host, Process
from tare.sites.ledger import Kind, Ledger, Made
from tare.workloads import ClientCommand, Files, Measurement, Parameters, Target, Workload

if TYPE_CHECKING:
    from docker import DockerClient

SECRETS = Secrets(user="tareuser", password="s3cretofthisrun")  # noqa: S106 - of a server that never starts
RUN_DIR = "/run/tare"
_MACHINE = (
    "subprocess.Popen", "os.system", "os.posix_spawn", "socket.socket.connect", "pathlib.Path.write_text",
    "pathlib.Path.write_bytes", "pathlib.Path.mkdir",
)  # fmt: skip


class UntouchableHost(Host):
    """A host that fails on every call, for methods that only describe and so must not use the host."""

    name = "untouchable"

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        """Fail."""
        raise AssertionError(f"a method that only describes ran {list(argv)} on the host")

    def start(self, argv: Sequence[str], **_: Any) -> Process:
        """Fail."""
        raise AssertionError(f"a method that only describes started {list(argv)} on the host")

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:  # noqa: ARG002 - the contract's
        """Fail."""
        raise AssertionError(f"a method that only describes wrote {target} on the host")

    def get(self, source: str, target: Path) -> None:  # noqa: ARG002 - the contract's
        """Fail."""
        raise AssertionError(f"a method that only describes copied {source} from the host")

    def read(self, path: str) -> bytes | None:
        """Fail."""
        raise AssertionError(f"a method that only describes read {path} on the host")


class UntouchableEngine:
    """A container engine that fails on every use."""

    def __getattr__(self, name: str) -> Any:
        """Fail."""
        raise AssertionError(f"making a deployment used the engine's {name}")


class UntouchableLedger:
    """A ledger that fails when something is noted."""

    def note(self, kind: Kind, ident: str, **_: Any) -> None:
        """Fail."""
        raise AssertionError(f"making a deployment noted {kind.value} {ident} in the ledger")

    def forget(self, kind: Kind, ident: str, **_: Any) -> None:
        """Fail."""
        raise AssertionError(f"making a deployment struck {kind.value} {ident} from the ledger")

    def entries(self) -> tuple[Made, ...]:
        """Return no entries."""
        return ()

    def abandoned(self) -> tuple[Made, ...]:
        """Return no entries."""
        return ()

    def home(self, host: str) -> str:
        """Fail."""
        raise AssertionError(f"making a deployment asked for the home on {host}")

    def owner_on(self, host: str) -> Process:
        """Fail."""
        raise AssertionError(f"making a deployment asked for the owner on {host}")


@contextmanager
def no_machine() -> Iterator[None]:
    """Make starting a process, connecting a socket and writing a file fail."""

    def touched(name: str) -> Callable[..., None]:
        def fail(*args: object, **_: object) -> None:
            raise AssertionError(f"a method that only describes called {name}{args[:2]}")

        return fail

    with ExitStack() as stack:
        for name in _MACHINE:
            stack.enter_context(patch(name, touched(name)))
        yield


def check_argv(argv: object, where: str) -> None:
    """Fail unless `argv` is a tuple of texts that begins with a program and is free of this run's password."""
    assert isinstance(argv, tuple), f"{where}: argv must be a tuple, never one text for a shell: {argv!r}"
    assert argv, f"{where}: argv is empty"
    assert all(isinstance(word, str) for word in argv), f"{where}: argv holds more than text: {argv!r}"
    assert not any(SECRETS.password in word for word in argv), (
        f"{where}: the password is in argv, which every user of the machine can read; pass it in a file"
    )


def check_files(files: Mapping[str, str], where: str) -> None:
    """Fail unless each file has a plain name and holds text."""
    for name, content in files.items():
        assert name not in ("", ".."), f"{where}: a file has no name"
        assert "/" not in name, f"{where}: the file name {name!r} must be plain; the directory is given"
        assert isinstance(content, str), f"{where}: the content of {name} must be text"


class DatabaseConformance:
    """Tests of a database. Set `database`, and `settings` if it needs some."""

    database: ClassVar[Database]
    settings: ClassVar[Mapping[str, str | int | float | bool]] = {}

    @property
    def plan(self) -> ServerPlan:
        """Plan of a server with one node."""
        return ServerPlan("/data", RUN_DIR, "127.0.0.1", 33060, self.settings, SECRETS)

    def _commands(self) -> Mapping[str, ServerCommand]:
        with no_machine():
            return {name: getattr(self.database, name)(self.plan) for name in ("initialise", "serve")}

    def _no_answer(self) -> tuple[list[tuple[str, ...]], Exec]:
        """An `Exec` by which every program fails, and the list that collects what it was asked to run."""
        argvs: list[tuple[str, ...]] = []

        def inside(argv: Sequence[str], _timeout_s: float, _stdin: bytes) -> Completed:
            argvs.append(tuple(argv))
            return Completed(tuple(argv), 1, b"", b"connection refused")

        return argvs, inside

    def test_it_keeps_the_contract(self) -> None:
        """Methods, signatures and types of attributes."""
        breach = breach_of(Database)(self.database)
        assert breach is None, f"the database {breach}"

    def test_commands_are_argument_lists(self) -> None:
        """No shell, no secrets in arguments, plain names of files."""
        for name, command in self._commands().items():
            check_argv(command.argv, name)
            check_files(command.files, name)

    def test_commands_are_the_same_each_time(self) -> None:
        """The same plan gives the same command: nothing random, no clock."""
        assert self._commands() == self._commands(), "initialise and serve must depend only on the plan"

    def test_a_server_that_answers_nothing_is_not_ready(self) -> None:
        """`ready` reports; it does not raise."""
        argvs, inside = self._no_answer()
        assert self.database.ready(self.plan, inside) is False, "ready must be False while no query is answered"
        assert argvs, "ready must ask the server, by a program inside"
        for argv in argvs:
            check_argv(argv, "ready")

    def test_settings_that_cannot_be_read_fail_the_run(self) -> None:
        """`effective` of a server that does not answer raises `RunFailed`."""
        argvs, inside = self._no_answer()
        _must_raise(
            lambda: self.database.effective(self.plan, inside), "effective of a server that does not answer"
        )
        for argv in argvs:
            check_argv(argv, "effective")


class WorkloadConformance:
    """Tests of a workload. Set `workload` and `parameters`."""

    workload: ClassVar[Workload[Any]]
    parameters: ClassVar[Mapping[str, Any]] = {"measure_s": 10.0}
    drives: ClassVar[str] = "mariadb"
    """Database that the workload drives in these tests."""

    @property
    def own(self) -> Parameters:
        """`parameters`, validated by the workload's model."""
        return self.workload.parameters.model_validate(self.parameters)

    @property
    def target(self) -> Target | Files:
        """What the workload acts on: a database, or files."""
        if not self.workload.needs_database:
            return Files("/data")
        return Target(self.drives, Endpoint("127.0.0.1", 33060), SECRETS)

    def _commands(self) -> Mapping[str, ClientCommand]:
        with no_machine():
            commands = {"measure": self.workload.measure(self.own, self.target, RUN_DIR)}
            if self.workload.dataset(self.own):
                commands["load"] = self.workload.load(self.own, self.target, RUN_DIR)
            warm_up = self.workload.warm_up(self.own, self.target, RUN_DIR)
        return commands if warm_up is None else {**commands, "warm_up": warm_up}

    def _parse(self, stdout: str, code: int = 0, left: Mapping[str, str] | None = None) -> Measurement:
        with tempfile.TemporaryDirectory() as directory:
            out, err = Path(directory, "measure.stdout"), Path(directory, "measure.stderr")
            out.write_text(stdout)
            err.write_text("")
            for name, content in (left or {}).items():
                Path(directory, f"measure.{name}").write_text(content)
            return self.workload.parse(self.own, out, err, code)

    def test_it_keeps_the_contract(self) -> None:
        """Methods, signatures and types of attributes."""
        breach = breach_of(Workload)(self.workload)
        assert breach is None, f"the workload {breach}"

    def test_unknown_parameters_are_refused(self) -> None:
        """A typo in a study must not be ignored."""
        try:
            self.workload.parameters.model_validate({**self.parameters, "no_such_key": 1})
        except ValidationError:
            return
        raise AssertionError("the parameter model takes unknown keys; keep the `model_config` of `Parameters`")

    def test_commands_are_argument_lists(self) -> None:
        """No shell, no secrets in arguments, plain names of files, more time than `measure_s`."""
        for name, command in self._commands().items():
            check_argv(command.argv, name)
            check_files(command.files, name)
        least_s = self.own.measure_s
        assert self._commands()["measure"].timeout_s > least_s, "measure must have more time than measure_s"

    def test_commands_are_the_same_each_time(self) -> None:
        """The same parameters give the same commands."""
        first, second = (
            {name: replace(command, check_output=None) for name, command in self._commands().items()} for _ in "ab"
        )
        assert first == second, "commands must depend only on parameters and target"

    def test_the_data_set_does_not_depend_on_how_long_is_measured(self) -> None:
        """The data set's keys name the snapshot of loaded data, so they hold only what determines the data."""
        longer = self.own.model_copy(update={"measure_s": self.own.measure_s * 2})
        assert self.workload.dataset(self.own) == self.workload.dataset(longer), "dataset changes with measure_s"

    def test_no_output_is_no_measurement(self) -> None:
        """Empty output fails the run."""
        _must_raise(lambda: self._parse(""), "parse of empty output")


class OutputConformance(WorkloadConformance):
    """Set `output` too, to test `parse` on what the real program wrote."""

    output: ClassVar[str]
    """Whole standard output of a run with `parameters`."""
    left: ClassVar[Mapping[str, str]] = {}
    """Files that the program wrote too: name → content."""

    def test_a_whole_output_is_a_measurement(self) -> None:
        """The unit is named, counts add up, windows are in order, and a second reading gives the same."""
        read = self._parse(self.output, left=self.left)
        assert read == self._parse(self.output, left=self.left), "parse gives another result for the same output"
        assert read.unit, "the measurement names no unit of its operations"
        assert read.operations is not None
        assert read.operations > 0, "a whole output has operations"
        assert read.throughput_per_s is not None
        assert read.throughput_per_s > 0, "a whole output has a throughput"
        assert read.duration_s is not None
        assert read.duration_s > 0, "a whole output has a duration"
        counted = sum(count for _, count in read.histogram)
        assert not read.histogram or counted == read.operations, (
            f"histogram: {counted} of {read.operations} operations"
        )
        ends = [window.end_s for window in read.windows]
        assert ends == sorted(set(ends)), "windows must end one after the other"

    def test_an_output_that_is_cut_short_is_refused(self) -> None:
        """`parse` refuses half of the output, and an exit code of failure."""
        lines, output = self.output.splitlines(keepends=True), self.output
        half = "".join(lines[: len(lines) // 2]) if len(lines) > 1 else output[: len(output) // 2]
        _must_raise(lambda: self._parse(half, left=self.left), "parse of the first half of the output")
        _must_raise(lambda: self._parse(output, code=1, left=self.left), "parse of a program that ended with 1")


class MonitorConformance:
    """Tests of a monitor. Set `monitor`, and `host` if its programs depend on what the host has."""

    monitor: ClassVar[Monitor]
    interval_s: ClassVar[float] = 1.0

    @property
    def host(self) -> Host:
        """A host that fails on every call."""
        return UntouchableHost()

    @property
    def context(self) -> MonitorContext:
        """Context with two watched processes: a server in a container, and tare."""
        sut = WatchedProcess("sut", 7, own_cgroup=True, own_network=True, container_id="ab" * 32)
        return MonitorContext(self.host, "/run/m", self.interval_s, 60.0, (sut, WatchedProcess("tare", 1)))

    def test_it_keeps_the_contract(self) -> None:
        """Methods, signatures and types of attributes."""
        breach = breach_of(Monitor)(self.monitor)
        assert breach is None, f"the monitor {breach}"

    def test_programs_are_argument_lists(self) -> None:
        """At least one program, each with a name of its own."""
        with no_machine():
            programs = self.monitor.programs(self.context)
        assert programs, "a monitor has at least one program"
        assert len({program.name for program in programs}) == len(programs), "two programs have one name"
        for program in programs:
            check_argv(program.argv, program.name)
            check_files(program.files, program.name)

    def test_programs_are_the_same_each_time(self) -> None:
        """The same context gives the same programs."""
        assert self.monitor.programs(self.context) == self.monitor.programs(self.context), "programs differ"

    def test_final_commands_are_argument_lists(self) -> None:
        """Final commands use no shell, and their files have plain names."""
        for file, argv in self.monitor.final_commands(self.context).items():
            check_argv(argv, f"the final command for {file}")
            check_files({file: ""}, "final_commands")

    def test_nothing_left_behind_is_no_reading(self) -> None:
        """`read` of an empty directory fails the run."""
        with tempfile.TemporaryDirectory() as directory:
            _must_raise(lambda: self.monitor.read(self.context, Path(directory)), "read of an empty directory")


class DeploymentConformance:
    """Tests of a deployment. Set `deployment` to the class. Test with real images whether tasks start."""

    deployment: ClassVar[DeploymentFactory]

    def test_it_keeps_the_contract(self) -> None:
        """Methods, signatures and types of attributes."""
        breach = breach_of_factory(Deployment)(self.deployment)
        assert breach is None, f"the deployment {breach}"

    def test_making_one_touches_nothing(self) -> None:
        """Making a deployment uses no host, ledger or engine; only its methods do."""
        ledger: Ledger = UntouchableLedger()
        with no_machine():
            made = self.deployment(UntouchableHost(), ledger, cast("DockerClient", UntouchableEngine()))
        for name in ("needs", "isolates_network", "own_root"):
            attribute = getattr(made, name)
            assert attribute == getattr(self.deployment, name), f"{name} is not known before a deployment is made"


def _must_raise(call: Callable[[], object], what: str) -> None:
    try:
        result = call()
    except RunFailed:
        return
    except TareError as error:
        raise AssertionError(f"{what} must raise RunFailed, not {type(error).__name__}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{what} must raise RunFailed with a sentence, not {error!r}") from error
    raise AssertionError(f"{what} must raise RunFailed, and returned {result!r:.80}")
