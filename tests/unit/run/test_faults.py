"""What a run does when something goes wrong that the fakes cannot be told by a setting."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.databases import Exec, ServerPlan
from tare.databases.fake import FakeDatabase
from tare.deployments import Instance, Task
from tare.deployments.fake import FakeDeployment
from tare.errors import EndedAtOnce, EnvironmentLacks, RunFailed, host_failed
from tare.plan.model import Plan
from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import Phase, RunRecord
from tare.run.attempt import raw_files as collecting
from tare.run.clock import SystemClock
from tare.run.events import Event, Notice, Observer, PhaseStarted
from tare.run.execute import execute
from tare.run.interrupts import Interrupted, Interrupts
from tare.sites import Completed, Site
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import alive

PHASES = list(Phase)


class At:
    """An observer that does something when a phase begins, once."""

    def __init__(self, phase: Phase, what: Callable[[], object]) -> None:
        self.phase, self.what, self.done = phase, what, False

    def __call__(self, event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is self.phase and not self.done:
            self.done = True
            self.what()


class Killed(BaseException):
    """What tare does after it is gone does not count."""


def _die() -> None:
    raise Killed


def _take(rig: Any, plan: Plan, observer: Observer, into: list[RunRecord]) -> None:
    """Keep each record as it comes: what comes before a crash counts."""
    for kept in execute(plan, rig.machine, rig.destination(), observer):
        into.extend(kept)


def test_a_command_that_a_signal_ended_has_the_exit_code_of_shells() -> None:
    assert [Interrupted(number).exit_code for number in (signal.SIGINT, signal.SIGTERM)] == [130, 143]


@pytest.mark.parametrize("phase", PHASES)
def test_a_study_resumes_after_a_crash_in_any_phase(rig: Any, plans: Any, phase: Phase) -> None:
    plan = plans(blocks=2)
    records: list[RunRecord] = []
    with pytest.raises(Killed):
        _take(rig, plan, At(phase, _die), records)
    assert records == []
    again = rig.execute(plan)
    assert [record.run_id for record in again] == [run.id for run in plan.runs]
    assert all(record.outcome.ok and record.attempt == 1 for record in again), [one.outcome for one in again]
    assert rig.leftovers == []


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_in_any_phase_tears_down_and_loses_no_finished_run(rig: Any, plans: Any, phase: Phase) -> None:
    interrupts = Interrupts()
    rig.swap(interrupts=interrupts)
    plan = plans(blocks=2, cooldown_s=0.1)
    records: list[RunRecord] = []
    press = At(phase, lambda: os.kill(os.getpid(), signal.SIGINT))
    with interrupts.installed(), pytest.raises(Interrupted):
        _take(rig, plan, press, records)
    finished = phase in (Phase.COLLECT, Phase.TEARDOWN)
    assert [record.outcome.ok for record in records] == ([True] if finished else []), records
    assert rig.leftovers == []


def test_a_second_ctrl_c_does_not_break_into_the_teardown(rig: Any, plans: Any) -> None:
    interrupts = Interrupts()
    rig.swap(interrupts=interrupts)

    def press(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase in (Phase.MEASURE, Phase.COLLECT, Phase.TEARDOWN):
            os.kill(os.getpid(), signal.SIGINT)

    with interrupts.installed(), pytest.raises(Interrupted):
        list(execute(plans(), rig.machine, rig.destination(), press))
    assert rig.leftovers == []


def test_a_server_that_dies_while_measured_fails_the_run(rig: Any, plans: Any) -> None:
    started = []

    class Mortal(FakeDeployment):
        def start(self, task: Any) -> Any:
            instance = super().start(task)
            started.append(instance)
            return instance

    def kill_server() -> None:
        server = next(one for one in reversed(started) if one.task.name.endswith("-sut"))
        os.killpg(server.process.pid, signal.SIGKILL)

    rig.swap(deployments={"fake": Mortal})
    destination = rig.destination()
    ((record,),) = execute(plans(measure_s=5.0), rig.machine, destination, At(Phase.MEASURE, kill_server))
    assert not record.outcome.ok
    assert record.outcome.failed_in is Phase.MEASURE
    assert "the server ended during measure" in str(record.outcome.reason)
    assert rig.leftovers == []


def test_a_server_that_ends_while_its_settings_are_read_is_the_reason(rig: Any, plans: Any) -> None:
    """Found by `make chaos` on a cluster: `cat cannot be run in container …`, of a server out of memory."""

    started = list[Instance]()

    class Noted(FakeDeployment):
        def start(self, task: Task) -> Instance:
            started.append(super().start(task))
            return started[-1]

    class Mortal(FakeDatabase):
        asked = 0

        def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
            self.asked += 1
            if self.asked == 2:  # after the measure phase
                self.shutdown(plan, inside)
                server = next(each for each in reversed(started) if each.task.name.endswith("-sut"))
                end = time.monotonic() + 60.0
                while alive(LocalHost(), server.process) and time.monotonic() < end:
                    time.sleep(0.01)
                raise RunFailed("cat cannot be run in container 6c7c9ea44db1")
            return super().effective(plan, inside)

    rig.swap(databases={"fake": Mortal()}, deployments={"fake": Noted})
    (record,) = rig.execute(plans())
    assert "the server ended with exit code 0 while its settings were read" in str(record.outcome.reason)


def test_a_client_that_hangs_is_ended_at_its_time_limit(rig: Any, plans: Any) -> None:
    class Hasty(SystemClock):
        """Once told to hurry, a second lasts a fiftieth; only deadlines and durations notice."""

        pace = 1

        def monotonic(self) -> float:
            return super().monotonic() * Hasty.pace

    rig.swap(clock=Hasty())
    destination = rig.destination()
    hurry = At(Phase.MEASURE, lambda: setattr(Hasty, "pace", 50))
    ((record,),) = execute(plans(fault="hang", measure_s=20.0), rig.machine, destination, hurry)
    assert "did not end within 30 s" in str(record.outcome.reason)
    assert record.outcome.failed_in is Phase.MEASURE
    assert rig.leftovers == []


def test_steps_of_the_wall_clock_change_no_duration(rig: Any, plans: Any) -> None:
    hours = itertools.count()

    class Stepping(SystemClock):
        """Each look at the wall clock finds it an hour further back."""

        def wall(self) -> float:
            return 2_000_000_000.0 - 3600.0 * next(hours)

    rig.swap(clock=Stepping())
    (record,) = rig.execute(plans())
    assert record.outcome.ok, record.outcome
    assert all(0 <= time.seconds < 30 for time in record.phases)
    assert next(time for time in record.phases if time.phase is Phase.MEASURE).seconds >= 0.1


def test_a_full_disk_while_staging_fails_the_run_and_leaves_no_half(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(collecting, "redact", no_space)
    (record,) = rig.execute(plans())
    assert record.outcome.failed_in is Phase.COLLECT
    assert "No space left on device" in str(record.outcome.reason)
    assert record.raw == ()
    assert record.measurement is None
    assert list(rig.staging.iterdir()) == []


def test_a_teardown_that_fails_voids_no_good_data(rig: Any, plans: Any) -> None:
    class Sticky(LocalHost):
        def run(self, argv: Any, **options: Any) -> Any:
            if (
                argv[0] == "rm"
                and len(argv) > 2
                and str(argv[-1]).startswith(str(rig.machine.layout.work))
                and seen
            ):
                raise OSError("the directory sticks")
            return super().run(argv, **options)

    seen: list[int] = []
    host = Sticky()
    rig.swap(site=type(rig.machine.site)(sut=host, client=host))
    destination = rig.destination()
    ((record,),) = execute(plans(), rig.machine, destination, At(Phase.TEARDOWN, lambda: seen.append(1)))
    assert record.outcome.ok
    assert any("the directory sticks" in notice for notice in record.notices)
    assert rig.machine.ledger.entries() != ()
    seen.clear()
    rig.machine.ledger.forget(Kind.PATH, str(next(rig.machine.layout.work.iterdir())))


def test_an_unexpected_error_fails_the_run_and_keeps_its_trace(rig: Any, plans: Any) -> None:
    def broken(server: Any, client: Any, hosts: Any) -> Any:
        raise ZeroDivisionError("a mistake of ours")

    rig.swap(observe_path=broken)
    (record,) = rig.execute(plans())
    assert record.outcome.reason == "ZeroDivisionError: a mistake of ours"
    trace = rig.staging / f"{record.run_id}-1" / "traceback.txt"
    assert "in broken" in trace.read_text()


def test_no_password_is_kept_anywhere(rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda count: "5ec2e7" * (count // 3))
    password = "5ec2e7" * 8

    def telling(server: Any, client: Any, host: Any) -> Any:
        Path(server.task.output.stderr).write_text(f"connecting with {password}\n")
        return NetworkPath(Hop.LOOPBACK)

    rig.swap(observe_path=telling)
    records = rig.execute(plans(retries=1, fault="crash")) + rig.execute(plans())
    assert len(records) == 3
    assert all(password not in record.model_dump_json() for record in records)
    kept = [path.read_text() for path in rig.staging.rglob("*") if path.is_file()]
    assert any("connecting with [password]" in text for text in kept)
    assert not any(password in text for text in kept)
    home = [path for path in rig.machine.layout.home.rglob("*") if path.is_file()]
    assert not any(password.encode() in path.read_bytes() for path in home)


class Spent(LocalHost):
    """Starts no program as many times as `refusals` says."""

    refusals = 0

    def run(self, argv: Sequence[str], **rest: Any) -> Completed:
        if self.refusals:
            self.refusals -= 1
            raise host_failed(f"{argv[0]} cannot be run on {self.name}", errno.EAGAIN, os.strerror(errno.EAGAIN))
        return super().run(argv, **rest)


def test_a_host_without_a_process_left_costs_no_retries(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: 215 attempts failed in a minute, each at its first program."""
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)
    host = Spent()
    rig.swap(site=Site(sut=host, client=host))
    observer = At(Phase.PROVISION, lambda: setattr(host, "refusals", 10**6))
    records: list[RunRecord] = []
    with pytest.raises(EnvironmentLacks, match=r"no run can be started: sh cannot be run .*repeat the command"):
        _take(rig, plans(retries=3), observer, records)
    assert [record.outcome.ok for record in records] == [False]


def test_a_host_that_has_processes_again_is_waited_for(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)
    host = Spent()
    rig.swap(site=Site(sut=host, client=host))
    records: list[RunRecord] = []
    _take(rig, plans(retries=1), At(Phase.PROVISION, lambda: setattr(host, "refusals", 30)), records)
    failed, good = records
    assert (failed.outcome.ok, good.outcome.ok) == (False, True)
    assert not list(rig.machine.layout.work.iterdir())


def test_a_full_disk_under_the_home_costs_no_retries(rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)
    rig.machine.layout.home.mkdir(parents=True, exist_ok=True)
    rig.machine.layout.work.write_text("in the way of a directory")
    records: list[RunRecord] = []
    with pytest.raises(EnvironmentLacks, match=r"no run can be started: .*work on local cannot be written: mkdir"):
        _take(rig, plans(retries=3), lambda _: None, records)
    assert len(records) == 1


def test_a_host_that_is_lost_for_good_ends_the_study_with_its_record_kept(rig: Any, plans: Any) -> None:
    class Far(LocalHost):
        def lost_for_good(self) -> str | None:
            return "far was out of reach for 120 s"

        def tell_losses(self, tell: Callable[[str], None]) -> None:
            tell("far is unreachable")

    host = Far("far")
    rig.swap(site=Site(sut=host, client=host))
    records: list[RunRecord] = []
    with pytest.raises(
        EnvironmentLacks, match=r"a host is lost: far was out of reach for 120 s .*repeat the command"
    ):
        _take(rig, plans(retries=3, arms=("a", "b"), fault="crash"), rig.events.append, records)
    assert [record.outcome.ok for record in records] == [False]
    assert Notice("far is unreachable") in rig.events
    assert rig.leftovers == []


class Brief(FakeDeployment):
    """Servers that have ended before their start is over, as a container's may on a machine that is quick."""

    def start(self, task: Task) -> Instance:
        if task.name.endswith("-sut"):
            raise EndedAtOnce(task.name, "exit code 1", "Bad directive")
        return super().start(task)


def test_a_server_that_ends_while_it_is_started_is_told_as_one_that_ends_a_moment_later(
    rig: Any, plans: Any
) -> None:
    rig.swap(deployments={"fake": Brief})
    (record,) = rig.execute(plans(blocks=1))
    assert record.outcome.reason == (
        "the server ended with exit code 1 before it answered its first query; its last output: Bad directive "
        "(sut.stdout and sut.stderr among the raw files contain all of it)"
    )
    assert rig.leftovers == []
