"""A study between two hosts with kernels, boots and clocks of their own: virtual machines, rebooted and stepped."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.hosts import machine_hosts
from tests.integration.hosts.machine_hosts import AHEAD_S, MachineHost
from tests.integration.hosts.meanwhile import once
from tests.unit.record.parts import received_by

from tare.errors import EnvironmentLacks
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import Phase, RunRecord
from tare.run.between.reaching import reached_site
from tare.run.events import Event
from tare.run.execute import Destination, execute
from tare.run.local import Engine, local_machine
from tare.run.resume import StudyState
from tare.sites.engines import Engines
from tare.sites.local import LocalHost
from tare.study.reading.load import loads
from tare.study.registry import installed

# Every instruction of the machines is emulated, and a busy machine makes it slower still.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

STUDY = """\
format: 1
name: two-machines
question: Do a server and its client meet between two machines?
sut: {image: redis-7, database: redis, deployment: bare}
client: {image: tare-load, deployment: bare, own_host: true}
workload:
  name: tare-load
  connections: 2
  job:
    generators: {key: {uniform: {from: 0, to: 499}}, value: {text: {length: 100}}}
    operations: [{name: get, steps: [{send: "GET key:{key}", expect: {bytes: 100}}]}]
    load: {records: 500, steps: [{send: "SET key:{record} {value}"}]}
  warmup_s: 2
  measure_s: 8
  window_s: 1
protocol: {name: fixed, blocks: 1, retries: 1, control: false}
factors: {connections: {sets: workload.connections, levels: [2, 4]}}
baseline: connections-2
"""
_LEFT_S = 120.0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MachineHost, MachineHost]]:
    with machine_hosts.machines(tmp_path_factory.mktemp("machines")) as made:
        yield made


@dataclass(frozen=True)
class Played:
    """Attempts in order."""

    records: list[RunRecord]

    @property
    def reasons(self) -> list[str | None]:
        return [record.outcome.reason for record in self.records]


def plan_of() -> Plan:
    return expand(loads(STUDY, installed()))


def play(
    both: tuple[MachineHost, MachineHost],
    staging: Path,
    meanwhile: Callable[[Event], None] = lambda _: None,
    records: list[RunRecord] | None = None,
) -> Played:
    staging.mkdir(exist_ok=True)
    records = [] if records is None else records
    plan = plan_of()
    with reached_site(machine_hosts.site(*both)) as reached, closing(Engines(LocalHost())) as others:
        reached.refuse(plan)
        here = local_machine(plan, Engine(None, "none is needed", others))
        machine = reached.machine(plan, here, here.interrupts)
        destination = Destination(str(staging), StudyState.from_records(records), staging)
        for kept in execute(plan, machine, destination, meanwhile):
            records += kept
    return Played(records)


def assert_nothing_left(both: tuple[MachineHost, MachineHost]) -> None:
    """No process, directory or control group of a run; agents have left once their tare was gone."""
    deadline = time.monotonic() + _LEFT_S
    while left := [f"{host.name}: {what}" for host in both for what in _left_on(host)]:
        assert time.monotonic() < deadline, left
        time.sleep(1)


def _left_on(host: MachineHost) -> list[str]:
    work = host.ssh("ls", "-A", "/var/lib/tare/work", check=False).split()
    groups = host.ssh("find", "/sys/fs/cgroup", "-mindepth", "1", "-name", "'*tare*'", check=False).split()
    programs = host.ssh("ps", "-eo", "comm=").split()
    return [*work, *groups, *(name for name in programs if name in {"redis-server", "tare-load", "tare-probe"})]


def test_two_kernels_are_two_hosts_on_one_clock(both: tuple[MachineHost, MachineHost], tmp_path: Path) -> None:
    server_s, client_s = (float(host.ssh("date", "+%s")) for host in both)
    assert client_s - server_s == pytest.approx(AHEAD_S, abs=60)
    played = play(both, tmp_path / "staging")
    assert played.reasons == [None, None]
    for record in played.records:
        between = record.between
        assert between is not None
        assert between.one_boot is False
        assert between.after is not None
        before, after = between.before.clocks, between.after.clocks
        assert abs(after.offset_s - before.offset_s) <= before.bound_s + after.bound_s + 0.01
        assert received_by(between, "sut") > 100
        assert set(record.monitors or {}) == {"probe", "client-host"}
    assert_nothing_left(both)


def test_a_host_that_is_rebooted_costs_one_attempt(both: tuple[MachineHost, MachineHost], tmp_path: Path) -> None:
    """Whichever it was: the attempt names it, and the study goes on when it is back."""
    for number, host in enumerate(both):
        boot, records = host.boot, list[RunRecord]()
        staging = tmp_path / f"staging-{number}"
        with suppress(EnvironmentLacks):  # a host that is away for long ends the study
            play(both, staging, once(Phase.MEASURE, host.reset, 2.0), records)
        host.answers()
        assert host.boot != boot
        played = play(both, staging, records=records)
        failed = [record for record in played.records if not record.outcome.ok]
        assert len(failed) == 1, played.reasons
        assert host.name in str(failed[0].outcome.reason)
        assert "reboot" in str(failed[0].outcome.reason)
        good = sorted(record.arm for record in played.records if record.outcome.ok)
        assert good == ["connections-2", "connections-4"]
        assert_nothing_left(both)


def test_a_wall_clock_that_is_set_costs_one_attempt(both: tuple[MachineHost, MachineHost], tmp_path: Path) -> None:
    client = both[1]

    def set_clock() -> None:
        client.ssh("date", "--set", "'+1 hour'")

    played = play(both, tmp_path / "staging", once(Phase.MEASURE, set_clock, 2.0))
    first, *others = played.reasons
    step = re.match(rf"the wall clock of {client.name} was set forward by ([0-9.]+) s", first or "")
    assert step, played.reasons
    assert float(step[1]) == pytest.approx(3600, abs=1)
    assert others == [None, None]
    assert_nothing_left(both)
