"""The phases in which a run is driven, from an empty directory to a parsed measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tare.databases import Secrets
from tare.deployments import Instance
from tare.errors import NotComparable, RunFailed
from tare.plan.model import Plan, PlannedRun
from tare.protocols.pilot import Choice
from tare.run.bench import Bench, Images, make_token, parameters_of
from tare.run.chronicle import ask
from tare.run.declared import not_lodged, undeclared
from tare.run.emulated import with_sides
from tare.run.events import Emulated, Observer
from tare.run.loading import contents_of, ensure_snapshot, judge, last_words, loader_of
from tare.run.machine import Machine
from tare.run.monitors import Monitors
from tare.run.pace import ALONE, Pace
from tare.run.parity import Server as Known
from tare.run.parity import changed_during, told
from tare.run.ports import free_port
from tare.run.record import Outcome, Phase, RunRecord, Side
from tare.run.recording import record_of
from tare.run.references import server_of
from tare.run.rooms import Room, clear_room, make_room
from tare.run.seat import Seat, seat_of, seated, strays
from tare.run.server import Server
from tare.run.snapshot import copy_snapshot, size_of
from tare.run.stopwatch import Stopwatch
from tare.run.teardown import Teardown
from tare.run.tree import to_tree
from tare.run.usage import Meter
from tare.run.witness import observation, witness
from tare.storage import Lot
from tare.study.model import Arm
from tare.workloads import ClientCommand, Parameters, left_by

GRACE_S = 5.0
"""How long a server may take to end in the teardown; its data is thrown away, so it is not waited for long."""


@dataclass(frozen=True)
class Job:
    """What is to be attempted. `staging`: where the attempt's raw files go, a directory that is not there yet."""

    store_id: str
    plan: Plan
    run: PlannedRun
    number: int
    images: Images
    staging: Path
    choice: Choice | None = None
    """By which the plan's measure phase was chosen; `None` in a pilot, and where it is set."""

    @property
    def arm(self) -> Arm:
        """The arm that the run is of, with the CPUs of its seat."""
        return seated(self.plan.arm(self.run.arm), self.seat)

    @property
    def seat(self) -> Seat | None:
        """Where it stands in a duet, `None` where it has the machine to itself."""
        return seat_of(self.plan, self.run)

    @property
    def token(self) -> str:
        """Names all that the attempt makes."""
        return make_token(self.store_id, self.run.id, self.number)


@dataclass
class Found:
    """What is known of the attempt so far; a failed one keeps what it came to know."""

    host: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] | None = None
    emulated: tuple[Side, ...] = ()
    snapshot: Mapping[str, Any] | None = None
    effective: Mapping[str, str] | None = None
    parity: Mapping[str, Any] = field(default_factory=lambda: {"sut": None, "client": None})
    path: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    monitors: Mapping[str, Any] | None = None
    chronicle: Mapping[str, Any] | None = None
    measurement: Mapping[str, Any] | None = None
    continues: str | None = None
    duet: Mapping[str, Any] | None = None
    raw: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Raw files of tare's own: name → text."""


@dataclass(frozen=True)
class Ready:
    """A server that answers, where there is one, and all that is needed to load it."""

    bench: Bench
    server: Server | None
    parameters: Parameters
    run_id: str
    snapshot: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Phases:
    """Drives one attempt; what it learns is put into `found`.

    What it makes is registered: what runs in `stops`, since output is whole only when its program has ended,
    what merely lies about in `teardown`.
    """

    job: Job
    machine: Machine
    secrets: Secrets
    watch: Stopwatch
    found: Found
    stops: Teardown
    teardown: Teardown
    monitors: Monitors
    observer: Observer
    pace: Pace = ALONE

    def drive(self) -> None:
        """All phases up to the cool-down. Raises on the first thing that voids the run."""
        self.conduct(self.make_ready())

    def make_ready(self) -> Ready:
        """Provision and load."""
        with self.watch.phase(Phase.PROVISION):
            bench = self._provision()
            parameters = parameters_of(bench.workload, bench.settings, self.job.run.seed)
        with self.watch.phase(Phase.LOAD):
            bench = self._with_data(bench)
            server = self._load(bench)
            self._watched(bench, server, parameters)
        return Ready(bench, server, parameters, self.job.run.id, self.found.snapshot)

    def take_over(self, before: Ready) -> Ready:
        """The next stage: the server and the data of the one before it, a room and a trace of its own.

        What was taken over stays the first stage's to stop and to remove.
        """
        server = before.server
        with self.watch.phase(Phase.PROVISION):
            self.found.continues = before.run_id
            self.found.snapshot = before.snapshot
            own = self._provision()
            bench = replace(own, port=before.bench.port, lodging=before.bench.housed, kin=before.bench.group)
            parameters = parameters_of(bench.workload, bench.settings, self.job.run.seed)
        with self.watch.phase(Phase.LOAD):
            if server is not None:
                server.must_live("between two stages")
                self.found.effective = dict(server.effective())
            self._watched(bench, server, parameters)
        return Ready(bench, server, parameters, self.job.run.id, before.snapshot)

    def _watched(self, bench: Bench, server: Server | None, parameters: Parameters) -> None:
        self.stops.add("stopping the monitors", self.monitors.end)
        self.monitors.begin(bench, None if server is None else server.instance, parameters)

    def conduct(self, ready: Ready) -> None:
        """Warm-up, measure and cool-down; another attempt may be under way at the same pace."""
        bench, server, parameters = ready.bench, ready.server, ready.parameters
        self.pace.meet()
        with self.watch.phase(Phase.WARM_UP, parameters.warmup_s):
            self._warm_up(bench, server, parameters)
        self.pace.meet()
        with self.watch.phase(Phase.MEASURE, parameters.measure_s):
            self._measure(bench, server, parameters)
        with self.watch.phase(Phase.COOL_DOWN, parameters.cooldown_s):
            self.machine.clock.sleep(parameters.cooldown_s)
            self.monitors.must_live()
            self.monitors.end()
            if server is not None:
                self._ask(server)

    def _ask(self, server: Server) -> None:
        """What the server did by itself: asked when nothing is watched any more."""
        chronicler = self.machine.chroniclers.get(self.job.arm.settings.sut.database or "")
        asked = ask(server, chronicler, self.machine.clock, self.watch.times[0].began_at)
        self.found.chronicle = asked.tree
        self.found.notes.update(asked.files)
        if asked.notice is not None:
            self.found.notices.append(asked.notice)

    def _provision(self) -> Bench:
        """A directory, names, a port and a password of its own."""
        job, machine = self.job, self.machine
        self.found.host, self.found.engine = machine.host_facts(), machine.engine_facts()
        host = machine.site.sut
        room = Room(host, f"{machine.layout.work}/{job.token}")
        self.teardown.add("removing the work directory", lambda: clear_room(room, machine.ledger))
        make_room(room, machine.ledger)
        port = free_port(host, job.token)
        return Bench(machine, job.arm.settings, job.images, room, job.token, port, self.secrets)

    def _load(self, bench: Bench) -> Server | None:
        """A server that answers on the data; `None` where the workload's own program is the SUT."""
        if bench.settings.sut.database is None:
            return None
        server = bench.start_server("sut")
        self._note("sut", server.instance)
        self.stops.add("stopping the server", lambda: server.stop(GRACE_S))
        server.wait_until_ready(self.machine.clock)
        self.found.effective = dict(server.effective())
        return server

    def _with_data(self, bench: Bench) -> Bench:
        """Loaded data in place: an identical copy of the snapshot, on the storage that the arm names."""
        loader, host, spec = loader_of(self.job.plan, bench.settings), bench.room.host, bench.settings.sut.storage
        snapshot = None
        if contents_of(self.machine, loader, self.job.images).dataset:
            snapshot = ensure_snapshot(self.machine, loader, self.job.images)
            self.found.snapshot = {key: value for key, value in to_tree(snapshot).items() if key != "data"}
        storage = self.machine.storage(spec.kind)
        lot = Lot(bench.room.storage, f"tare-{bench.token}", 0 if snapshot is None else size_of(host, snapshot))
        self.teardown.add("removing the data", lambda: storage.clear(lot))
        bench = replace(bench, lodging=storage.lodge(lot, spec))
        if snapshot is None:
            bench.room.empty_data(self.job.images.sut, bench.housed.path)
        else:
            copy_snapshot(host, snapshot, bench.housed.path, warmed=spec.cache == "warmed")
        return bench

    def _warm_up(self, bench: Bench, server: Server | None, parameters: Parameters) -> None:
        target, run_dir = bench.target(server), bench.client_run_dir("warm-up")
        command = bench.workload.warm_up(parameters, target, run_dir)
        if command is None:
            return
        code = self._carry_out("warm-up", command, bench, server)
        judge(bench, "warm-up", command)
        if code != 0:
            raise RunFailed(f"the warm-up ended with {code}: {last_words(bench, 'warm-up')}")

    def _measure(self, bench: Bench, server: Server | None, parameters: Parameters) -> None:
        """The phase that counts; its output is parsed here, so that what is wrong with it fails this phase."""
        target, run_dir = bench.target(server), bench.client_run_dir("measure")
        command = bench.workload.measure(parameters, target, run_dir)
        served, proxy = None if server is None else server.instance, (self.found.path or {}).get("proxy")
        meter = Meter(bench.room.host, self.machine.clock, served, proxy)
        self.monitors.must_live()
        self.monitors.begin_measure(bench, parameters)
        code = self._carry_out("measure", command, bench, server, meter)
        self.monitors.end_measure()
        if server is not None:
            server.must_live("during the measure phase")
        if server is not None and (why := _unseen(self.found.path)) is not None:
            self.found.notices.append(f"the network path could not be seen: {why}")
        self.job.staging.mkdir(parents=True, exist_ok=True)
        stdout, stderr = self.job.staging / "measure.stdout", self.job.staging / "measure.stderr"
        output = bench.room.output("measure")
        bench.room.host.get(output.stdout, stdout)
        bench.room.host.get(output.stderr, stderr)
        for name in command.leaves:
            bench.room.bring(f"measure/{name}", left_by(stdout, name))
        self._check_after(server)
        measurement = bench.workload.parse(parameters, stdout, stderr, code)
        self.found.measurement = to_tree(measurement)
        self.found.duet = self.pace.share(measurement, parameters.window_s)

    def _carry_out(
        self, name: str, command: ClientCommand, bench: Bench, server: Server | None, meter: Meter | None = None
    ) -> int:
        """Run a client to its end and return its exit code; the first one is also what is observed."""
        client = bench.start_client(name, command, server)
        self._note("sut" if server is None else "client", client.instance)
        self.stops.add(f"stopping the client of {name}", lambda: client.stop(GRACE_S))
        self.monitors.client_started(name, client.instance, alone=server is None)
        if meter is not None:
            meter.begin(client.instance)
            self.pace.began(None if server is None else server.instance, client.instance)
        if self.found.parity.get("sut") is None or (server is not None and _unseen(self.found.path) is not None):
            seen = witness(self.machine, server, client)
            self.found.parity, self.found.path = seen.parity, seen.path
            self.found.notices += seen.notices
            self._check_before(bench)

        def watch() -> None:
            if server is not None:
                server.must_live(f"during {name}")
            if meter is not None:
                meter.look()

        code = client.wait(self.machine.clock, command.timeout_s, watch)
        if meter is not None:
            if used := meter.end(self.found.parity):
                self.found.usage = to_tree(used)
            self.pace.ended()
        client.stop(GRACE_S)
        return code

    def _note(self, side: Side, instance: Instance) -> None:
        """Whether it is emulated, of each side that was started; told at once, as its figures are watched live."""
        if instance.emulated and side not in self.found.emulated:
            self.found.emulated = with_sides(self.found.emulated, (side,))
            self.observer(Emulated(self.job.run, self.found.emulated))

    def _check_before(self, bench: Bench) -> None:
        """Refuse the run before it is measured, where it differs in more than the study names."""
        wrong = undeclared(self.job.arm.settings, self.found.parity, self.found.path, bench.group)
        wrong += not_lodged(bench.settings.sut.storage, bench.housed, bench.data_dir, self.found.parity)
        if wrong := (*wrong, *strays(self.job.seat, self.found.path)):
            raise NotComparable(f"{self.job.run.arm} is not what the study declares: {told(wrong)}")
        found = self.machine.references.differences(self.job.plan.study, self._so_far(), self._server())
        if found:
            raise NotComparable(told(found))

    def _check_after(self, server: Server | None) -> None:
        """The same must be in force when the measure phase is over: variables and limits can be set at run time.

        A program that was itself the SUT has ended by then, and only the host is left to be looked at.
        """
        before, notices = self._so_far(), list[str]()
        changes: dict[str, Any] = {"host": self.machine.host_facts()}
        if server is not None:
            seen = observation(server.deployment, server.instance, notices)
            self.found.notices += notices
            self.found.parity = {**self.found.parity, "sut_after": seen}
            again = {**before.parity, "sut": before.parity.get("sut") if seen is None else seen}
            changes |= {"parity": again, "effective": dict(server.effective())}
        moved_to = None if server is None else self.pace.moved_to
        after = before.model_copy(update=changes)
        if changed := changed_during(before, after, self._server(), moved_to):
            raise NotComparable(f"{self.job.run.arm} changed while it was measured: {told(changed)}")

    def _so_far(self) -> RunRecord:
        return record_of(self.job, self.found, self.watch.times, Outcome(ok=True))

    def _server(self) -> Known:
        return server_of(self.machine.databases, self.job.arm.settings.sut.database)


def _unseen(path: Mapping[str, Any] | None) -> str | None:
    """Why it is not known by which way the connections went; `None` where it is."""
    if path is None:
        return "no connection was there to look at"
    return "the connections could not be matched" if path.get("hop", "") is None else None
