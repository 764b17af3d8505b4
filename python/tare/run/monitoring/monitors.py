"""The monitors of one attempt: which of them watch what, and when."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tare.deployments import Instance
from tare.monitors import SUT, MonitorContext, WatchedProcess, why_unavailable
from tare.record.monitor import MonitorFacts
from tare.record.raw_files import (
    CLIENT,
    CLIENT_TRACER,
    DIRECTORY,
    ON_CLIENT,
    TRACER,
    is_tracer,
    node_tracer,
    on_node,
    trace_of,
)
from tare.record.trace import cpu_of
from tare.record.usage import Usage
from tare.run.at_once import at_once
from tare.run.attempt.context import RunContext
from tare.run.attempt.directory import WorkDirectory
from tare.run.attempt.server import Node
from tare.run.clock import Clock
from tare.run.machine import Machine
from tare.run.monitoring.processes import ENGINE, processes_of, processes_on
from tare.run.monitoring.watch import Watch
from tare.run.unreadable import read_or_failed
from tare.sites import Host
from tare.study.model import ArmSettings, MonitorSpec
from tare.workloads import Parameters

CPU_CLOCK = Path(__file__).parents[2] / "monitors" / "cpu_clock.py"
_CALL_S = 30.0
_LOOK_S, _LOOK_FAR_S = 0.2, 1.0
"""How often a waiting loop looks whether monitors live, here and on hosts over SSH."""


INTERVAL_S = 1.0
OF_HOSTS = frozenset({"iostat", "mpstat", "pidstat", "profile", "sar"})
"""Monitors of a whole host; the client's host gets them too if it is not the SUT's."""
MOST_SAMPLES = 6000
_INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_SPARE_S, _SPARE = 3600.0, 4.0
"""Time limit of a monitor: if tare was killed, it ends by itself when its run would long be over."""


@dataclass(frozen=True)
class CpuReading:
    """CPU time so far by monitor; `None` if one of its programs has ended. `at_s`: on CLOCK_MONOTONIC."""

    at_s: float
    used_ns: Mapping[str, int | None]


@dataclass(frozen=True)
class Cost:
    """CPU time of a monitor, from when all monitors ran until before the first one was stopped.

    Its start and end are left out: a long study pays for them only once.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    cpu_s: float | None


def read_cpu_time(host: Host, clock: Clock, programs: Mapping[str, tuple[str, ...]]) -> CpuReading:
    """Read the CPU time of monitors.

    `programs`: monitor → arguments of cpu_clock.py for each of its programs, a pid or `below:PID`.
    """
    at_s, asked = clock.monotonic(), [word for words in programs.values() for word in words]
    if not asked:
        return CpuReading(at_s, {})
    argv = ["python3", "-I", "-S", "-", *asked]
    clocks = json.loads(host.run(argv, timeout_s=_CALL_S, stdin=CPU_CLOCK.read_bytes()).stdout)
    return CpuReading(at_s, {name: _sum(clocks, words) for name, words in programs.items()})


def cost_of(name: str, began: CpuReading | None, ended: CpuReading | None) -> Cost | None:
    """Return the difference of two readings; `None` for a monitor that was not read."""
    if began is None or ended is None or name not in began.used_ns or name not in ended.used_ns:
        return None
    before, after = began.used_ns[name], ended.used_ns[name]
    used_s = None if before is None or after is None else (after - before) / 1e9
    return Cost(began.at_s, ended.at_s, used_s)


def _sum(values: Mapping[str, int], words: tuple[str, ...]) -> int | None:
    pids = [word.rpartition(":")[2] for word in words]
    return sum(values[pid] for pid in pids) if all(pid in values for pid in pids) else None


@dataclass(frozen=True)
class Place:
    """Where a monitor runs, what it watches there, and which monitor it is.

    `of`: whose host it watches, `client` or a further node; "" for the SUT's or first node's host.
    """

    workdir: WorkDirectory
    watched: tuple[WatchedProcess, ...]
    monitor: str
    of: str = ""


@dataclass
class Monitors:
    """Monitors of an attempt. `running` is empty before and after it. `absent`: monitor → why it is absent."""

    machine: Machine
    running: dict[str, Watch] = field(default_factory=dict)
    ended: list[Watch] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    watched: tuple[WatchedProcess, ...] = ()
    on_nodes: dict[int, tuple[WatchedProcess, ...]] = field(default_factory=dict)
    """For nodes on hosts of their own: node, from 1 → processes to watch on its host."""
    started: tuple[WatchedProcess, ...] = ()
    """The last client, as processes of the SUT's host; `started_there`: as those of the client's own host."""
    started_there: tuple[WatchedProcess, ...] = ()
    before: CpuReading | None = None
    after: CpuReading | None = None
    next_look_s: float = 0.0

    def begin(self, context: RunContext, servers: Mapping[str, Instance], parameters: Parameters) -> None:
        """Start the trace of each host, which watches its engine, host and servers. Returns once all traces run."""
        site, spec = self.machine.site, tracer_of(context.settings)

        def of_node(node: Node) -> None:
            host = site.host_of(node.number)
            own = {name: instance for name, instance in servers.items() if name == node.name}
            self.on_nodes[node.number] = processes_on(host, own, context.storages[host.name], with_tare=False)
            if node.number == 1:
                self.watched = self.on_nodes[1]
                self._start(context, parameters, TRACER, spec)
            else:
                place = Place(context.workdir_of(node), self.on_nodes[node.number], TRACER, node.name)
                self._start(context, parameters, node_tracer(node.name), spec, place)

        def of_sut() -> None:
            here, with_tare = context.workdir.host, not self.machine.parts
            self.watched = processes_on(here, servers, context.storages[here.name], with_tare=with_tare)
            self._start(context, parameters, TRACER, spec)

        def of_client(workdir: WorkDirectory) -> None:
            place = Place(workdir, processes_on(workdir.host, {}, with_tare=False), TRACER, CLIENT)
            self._start(context, parameters, CLIENT_TRACER, spec, place)

        calls = [partial(of_node, node) for node in context.nodes] if site.nodes else [of_sut]
        if context.client_workdir is not None:
            calls.append(partial(of_client, context.client_workdir))
        at_once(calls)
        self.running = dict(sorted(self.running.items()))  # an order that does not depend on the faster host

    def begin_measure(self, context: RunContext, parameters: Parameters, *, under_way: bool = False) -> None:
        """Start the monitors that the study names; an optional monitor is skipped if it is unavailable.

        `under_way`: the client of the measure phase runs already, as with a generator that warms up by itself.
        """
        before = set(self.running)
        for name, spec in others_of(context.settings).items():
            why = self._why_unavailable(name, spec)
            if why is not None and spec.optional:
                self.absent[name] = why
                continue
            self._start(context, parameters, name, spec)
            self._start_on_client(context, parameters, name, spec)
            for node in context.nodes[1:] if self.machine.site.nodes else ():
                place = Place(context.workdir_of(node), self.on_nodes[node.number], name, node.name)
                self._start(context, parameters, on_node(name, node.name), spec, place)
        for name, watch in self.running.items() if under_way else ():
            started = self.started_there if of_client_host(name) else self.started
            if name not in before and started:
                watch.add_targets(started)
        if any(not is_tracer(name) for name in self.running):
            self.before = self._read_cpu_time()

    def client_started(self, phase: str, client: Instance, *, alone: bool) -> None:
        """Watch a client from now on, if it runs on a watched host.

        `alone`: there is no server; the client is itself the SUT and bears the server's name.
        """
        name = phase if phase != "measure" else SUT if alone else "client"
        if self.machine.client_part is not None and not alone:
            self.started_there = processes_of(self.machine.site.client, name, client)
            for watch in [each for each in self.running.values() if of_client_host(each.name)]:
                watch.add_targets(self.started_there)
            return
        self.started = processes_of(self.machine.site.sut, name, client)
        for watch in [each for each in self.running.values() if not of_client_host(each.name)]:
            watch.add_targets(self.started)

    def _why_unavailable(self, name: str, spec: MonitorSpec) -> str | None:
        """Return why a host of the SUT cannot run the monitor; `None` if all hosts can."""
        reasons = (
            why_unavailable(self.machine.monitors[name], host, interval_of(name, spec, 0.0), spec.options)
            for host in self.machine.site.sut_hosts
        )
        return next((why for why in reasons if why is not None), None)

    def must_live(self) -> None:
        """Raise `RunFailed` if a monitor has ended by itself."""
        for watch in self.running.values():
            watch.must_live()

    def must_live_still(self) -> None:
        """Like `must_live`, for a loop that waits: looks at most once in a while.

        A monitor that ended for want of disk space is to be noticed while there is none.
        """
        now_s = self.machine.clock.monotonic()
        if now_s >= self.next_look_s:
            self.next_look_s = now_s + (_LOOK_FAR_S if self.machine.parts else _LOOK_S)
            self.must_live()

    def end_measure(self) -> None:
        """Stop all monitors except traces.

        Before that, checks that all lasted, and reads what each cost.
        """
        self.must_live()
        others = [name for name in self.running if not is_tracer(name)]
        if others:
            self.after = self._read_cpu_time()
        for name in others:
            self.running[name].fetch_reports()
        self._stop(reversed(others))

    def end(self) -> None:
        """Stop all running monitors; safe to call again."""
        self._stop(reversed(tuple(self.running)))

    def read(
        self, raw: Path, usage: Usage | None, ahead_s: Mapping[str, float] | None = None
    ) -> Mapping[str, MonitorFacts]:
        """Return the record's entry: monitor → its interval, samples, cost and its report on itself.

        `ahead_s`: host → seconds by which its clock is ahead of the SUT's or first node's clock.
        """
        phase, figures = usage and usage.phase, dict[str, MonitorFacts]()
        trace = trace_of(raw)
        for watch in self.ended:
            _, reading = watch.read(raw, phase, (ahead_s or {}).get(watch.context.host.name, 0.0))
            cost = cost_of(watch.name, self.before, self.after)
            daemons = watch.monitor.daemons
            shared = {"daemon_cpu_s": cpu_of(trace, daemons, phase)} if daemons and "absent" not in reading else {}
            if watch.name == TRACER:
                shared["engine_cpu_s"] = cpu_of(trace, ENGINE, phase)
            with read_or_failed(f"what the monitor {watch.name} says of itself"):
                own = {**({} if cost is None else dataclasses.asdict(cost)), **shared, **reading}
                figures[watch.name] = MonitorFacts.model_validate(own)
        return figures | {name: MonitorFacts(absent=why) for name, why in self.absent.items()}

    def _read_cpu_time(self) -> CpuReading:
        """Read the CPU time of monitors on the SUT's (or first node's) host and the client's, as of one moment."""
        here, far = self.machine.site.sut, self.machine.site.client
        programs = {name: watch.counted for name, watch in self.running.items() if watch.counted}
        programs.pop(CLIENT_TRACER, None)
        near = {name: words for name, words in programs.items() if self.running[name].context.host is here}
        away = {name: words for name, words in programs.items() if of_client_host(name)}
        seen = read_cpu_time(here, self.machine.clock, near)
        return CpuReading(seen.at_s, {**seen.used_ns, **read_cpu_time(far, self.machine.clock, away).used_ns})

    def _start_on_client(self, context: RunContext, parameters: Parameters, name: str, spec: MonitorSpec) -> None:
        """Start the monitor on a separate client host; if it is unavailable there, the record says so."""
        if context.client_workdir is None or name not in OF_HOSTS:
            return
        workdir = context.workdir_for_client
        monitor = self.machine.monitors[name]
        why = why_unavailable(monitor, workdir.host, interval_of(name, spec, 0.0), spec.options)
        if why is None:
            place = Place(workdir, processes_on(workdir.host, {}, with_tare=False), name, CLIENT)
            self._start(context, parameters, f"{ON_CLIENT}{name}", spec, place)
        else:
            self.absent[f"{ON_CLIENT}{name}"] = why

    def _start(
        self,
        context: RunContext,
        parameters: Parameters,
        name: str,
        spec: MonitorSpec,
        place: Place | None = None,
    ) -> None:
        """Start a monitor. `place`: elsewhere than on the host of the SUT or of its first node."""
        seconds = parameters.warmup_s + parameters.measure_s + parameters.cooldown_s
        place = place or Place(context.workdir, self.watched, name)
        workdir = place.workdir
        monitor_context = MonitorContext(
            host=workdir.host,
            directory=f"{workdir.raw}/{DIRECTORY}/{name}",
            interval_s=interval_of(place.monitor, spec, seconds),
            most_s=_SPARE * seconds + _SPARE_S,
            watched=place.watched,
            options=spec.options,
        )
        monitor, ledger = self.machine.monitors[place.monitor], self.machine.ledger_on(workdir.host)
        watch = Watch(name, monitor, monitor_context, spec, ledger, self.machine.clock, of=place.of)
        self.running[name] = watch
        watch.start()

    def _stop(self, names: Iterable[str]) -> None:
        """Stop the monitors of each host in turn, all hosts at once."""
        order, before = list(names), len(self.ended)
        on: dict[str, list[str]] = {}
        for name in order:
            on.setdefault(self.running[name].context.host.name, []).append(name)
        try:
            at_once([partial(self._stop_on_a_host, each) for each in on.values()])
        finally:
            self.ended[before:] = sorted(self.ended[before:], key=lambda watch: order.index(watch.name))

    def _stop_on_a_host(self, names: Iterable[str]) -> None:
        for name in names:
            watch = self.running[name]
            watch.stop()
            self.ended.append(watch)
            del self.running[name]


def of_client_host(name: str) -> bool:
    """Whether a running monitor watches a separate client host."""
    return name.startswith(ON_CLIENT)


def tracer_of(settings: ArmSettings) -> MonitorSpec:
    """Return how the trace of an arm's runs is recorded."""
    return settings.monitors.get(TRACER, MonitorSpec())


def others_of(settings: ArmSettings) -> Mapping[str, MonitorSpec]:
    """Return the monitors of an arm other than the trace."""
    return {name: spec for name, spec in settings.monitors.items() if name != TRACER}


def interval_of(name: str, spec: MonitorSpec, seconds: float) -> float:
    """Return a monitor's interval: the study's, else one second.

    For a trace without a given interval, a tenth of a second, or more for long runs (`MOST_SAMPLES`).
    """
    if spec.interval_s is not None:
        return spec.interval_s
    if name != TRACER:
        return INTERVAL_S
    return next((each for each in _INTERVALS_S if seconds / each <= MOST_SAMPLES), _INTERVALS_S[-1])


def required_monitors(settings: ArmSettings) -> Mapping[str, MonitorSpec]:
    """Return the monitors that an arm's runs cannot do without, the trace first."""
    others = {name: spec for name, spec in others_of(settings).items() if not spec.optional}
    return {TRACER: tracer_of(settings), **others}
