"""The monitors of one attempt: which of them watch what, and from when to when."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tare.deployments import Instance
from tare.monitors import SUT, Monitor, MonitorContext, WatchedProcess
from tare.monitors.probe import TRACE
from tare.plan.model import Plan
from tare.run.at_once import at_once
from tare.run.attempt.context import RunContext
from tare.run.attempt.directory import WorkDirectory
from tare.run.attempt.server import Node
from tare.run.clock import Clock
from tare.run.machine import Machine
from tare.run.monitoring.scene import ENGINE, around, side
from tare.run.monitoring.watch import CLIENT, DIRECTORY, Watch
from tare.run.usage.trace import cpu_of, span_of
from tare.sites import Host
from tare.study.model import ArmSettings, MonitorSpec
from tare.workloads import Parameters

CPU_CLOCK = Path(__file__).parents[2] / "monitors" / "cpu_clock.py"
_CALL_S = 30.0


TRACER = "probe"
"""The monitor that every run has, from before its warm-up to the end of its cool-down; others watch the measure
phase."""
CLIENT_TRACER = "client-host"
"""The same of the client's host, where that is not the SUT's; on that host's own clock."""
_NODE_TRACER = re.compile(r"sut-\d+-host")
"""The same of the host of a cluster's further node (`sut-2-host`), where that is its own; on that host's clock."""
INTERVAL_S = 1.0
ON_CLIENT = "client-"
"""Begins what a monitor is called that watches the client's host, too: `client-profile`."""
OF_HOSTS = frozenset({"iostat", "mpstat", "pidstat", "profile", "sar"})
"""Monitors of a whole host, which the client's has as well where it is not the SUT's."""
MOST_SAMPLES = 6000
_INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_SPARE_S, _SPARE = 3600.0, 4.0
"""A monitor whose tare was killed ends by itself when its run would long be over."""


@dataclass(frozen=True)
class Look:
    """CPU time so far, by monitor; `None` where one of its programs had gone. `at_s`: on CLOCK_MONOTONIC."""

    at_s: float
    used_ns: Mapping[str, int | None]


@dataclass(frozen=True)
class Cost:
    """CPU time of a monitor between two looks: from when all monitors were at work to before the first was stopped.

    Starting and ending it is not in it: a study that lasts pays that once.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    cpu_s: float | None


def look(host: Host, clock: Clock, programs: Mapping[str, tuple[str, ...]]) -> Look:
    """`programs`: monitor → what cpu_clock.py is asked for each of its programs, a pid or `below:PID`."""
    at_s, asked = clock.monotonic(), [word for words in programs.values() for word in words]
    if not asked:
        return Look(at_s, {})
    argv = ["python3", "-I", "-S", "-", *asked]
    clocks = json.loads(host.run(argv, timeout_s=_CALL_S, stdin=CPU_CLOCK.read_bytes()).stdout)
    return Look(at_s, {name: _sum(clocks, words) for name, words in programs.items()})


def cost_of(name: str, began: Look | None, ended: Look | None) -> Cost | None:
    """The difference, `None` for a monitor that was not looked at."""
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
    """Where a monitor works, what it watches there, and which of the machine's monitors it is.

    `of`: whose host that is, `client` or a further node; "" of the SUT's or of its first node.
    """

    workdir: WorkDirectory
    watched: tuple[WatchedProcess, ...]
    monitor: str
    of: str = ""


@dataclass
class Monitors:
    """Started and stopped by the phases; `running` is empty before and after. `absent`: monitor → why it is not."""

    machine: Machine
    running: dict[str, Watch] = field(default_factory=dict)
    ended: list[Watch] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    watched: tuple[WatchedProcess, ...] = ()
    around: dict[int, tuple[WatchedProcess, ...]] = field(default_factory=dict)
    """Of nodes on hosts of their own: node, from 1 → what there is to watch on its host."""
    later: tuple[WatchedProcess, ...] = ()
    before: Look | None = None
    after: Look | None = None

    def begin(self, context: RunContext, servers: Mapping[str, Instance], parameters: Parameters) -> None:
        """Begin the trace of each host: engine, host and its servers, by name. Returns once all are at work."""
        site, spec = self.machine.site, tracer_of(context.settings)

        def of_node(node: Node) -> None:
            host = site.host_of(node.number)
            own = {name: instance for name, instance in servers.items() if name == node.name}
            self.around[node.number] = around(host, own, context.storages[host.name], with_tare=False)
            if node.number == 1:
                self.watched = self.around[1]
                self._start(context, parameters, TRACER, spec)
            else:
                place = Place(context.workdir_of(node), self.around[node.number], TRACER, node.name)
                self._start(context, parameters, node_tracer(node.name), spec, place)

        def of_sut() -> None:
            here, with_tare = context.workdir.host, not self.machine.parts
            self.watched = around(here, servers, context.storages[here.name], with_tare=with_tare)
            self._start(context, parameters, TRACER, spec)

        def of_client(workdir: WorkDirectory) -> None:
            place = Place(workdir, around(workdir.host, {}, with_tare=False), TRACER, CLIENT)
            self._start(context, parameters, CLIENT_TRACER, spec, place)

        calls = [partial(of_node, node) for node in context.nodes] if site.nodes else [of_sut]
        if context.client_workdir is not None:
            calls.append(partial(of_client, context.client_workdir))
        at_once(calls)
        self.running = dict(sorted(self.running.items()))  # as ever, whichever host was the quickest

    def begin_measure(self, context: RunContext, parameters: Parameters) -> None:
        """Start the monitors that the study names; those that it can do without, where they can be had."""
        for name, spec in others_of(context.settings).items():
            why = self._why_unavailable(name, spec)
            if why is not None and spec.optional:
                self.absent[name] = why
                continue
            self._start(context, parameters, name, spec)
            self._start_on_client(context, parameters, name, spec)
            for node in context.nodes[1:] if self.machine.site.nodes else ():
                place = Place(context.workdir_of(node), self.around[node.number], name, node.name)
                self._start(context, parameters, on_node(name, node.name), spec, place)
        if any(not is_tracer(name) for name in self.running):
            self.before = self._look()

    def client_started(self, phase: str, client: Instance, *, alone: bool) -> None:
        """Have a client watched from now on, where it stands on the host that is watched.

        `alone`: there is no server; what is measured is this program, so that it bears the server's name.
        """
        name = phase if phase != "measure" else SUT if alone else "client"
        if self.machine.client_part is not None and not alone:
            later = side(self.machine.site.client, name, client)
            for watch in [each for each in self.running.values() if of_client_host(each.name)]:
                watch.hand(later)
            return
        self.later = side(self.machine.site.sut, name, client)
        for watch in [each for each in self.running.values() if not of_client_host(each.name)]:
            watch.hand(self.later)

    def _why_unavailable(self, name: str, spec: MonitorSpec) -> str | None:
        """Why a host of the SUT cannot have it; `None` where all can."""
        reasons = (
            self.machine.monitors[name].why_unavailable(host, interval_of(name, spec, 0.0), spec.options)
            for host in self.machine.site.sut_hosts
        )
        return next((why for why in reasons if why is not None), None)

    def must_live(self) -> None:
        """Raise `RunFailed` when one has ended by itself."""
        for watch in self.running.values():
            watch.must_live()

    def end_measure(self) -> None:
        """Stop all but the trace, having seen that they lasted, and read what each cost before the first stops."""
        self.must_live()
        others = [name for name in self.running if not is_tracer(name)]
        if others:
            self.after = self._look()
        for name in others:
            self.running[name].harvest()
        self._stop(reversed(others))

    def end(self) -> None:
        """Stop all that runs; safe to call again."""
        self._stop(reversed(tuple(self.running)))

    def read(
        self, raw: Path, usage: Mapping[str, Any] | None, ahead_s: Mapping[str, float] | None = None
    ) -> Mapping[str, Any]:
        """What the record keeps: monitor → its interval, samples, cost and whatever it reports on itself.

        `ahead_s`: host → its clock less that of the SUT or of its first node.
        """
        phase, figures = span_of(usage), dict[str, Any]()
        trace = trace_of(raw)
        for watch in self.ended:
            _, reading = watch.read(raw, phase, (ahead_s or {}).get(watch.scene.host.name, 0.0))
            cost = cost_of(watch.name, self.before, self.after)
            daemons = watch.monitor.daemons
            shared = {"daemon_cpu_s": cpu_of(trace, daemons, phase)} if daemons and "absent" not in reading else {}
            figures[watch.name] = {**({} if cost is None else dataclasses.asdict(cost)), **shared, **reading}
        if TRACER in figures:
            figures[TRACER]["engine_cpu_s"] = cpu_of(trace, ENGINE, phase)
        return figures | {name: {"absent": why} for name, why in self.absent.items()}

    def _look(self) -> Look:
        """On the hosts of the SUT, or its first node, and of the client, at what stands there; as at one moment."""
        here, far = self.machine.site.sut, self.machine.site.client
        programs = {name: watch.counted for name, watch in self.running.items() if watch.counted}
        programs.pop(CLIENT_TRACER, None)
        near = {name: words for name, words in programs.items() if self.running[name].scene.host is here}
        away = {name: words for name, words in programs.items() if of_client_host(name)}
        seen = look(here, self.machine.clock, near)
        return Look(seen.at_s, {**seen.used_ns, **look(far, self.machine.clock, away).used_ns})

    def _start_on_client(self, context: RunContext, parameters: Parameters, name: str, spec: MonitorSpec) -> None:
        """Where the client's host is another one; one that cannot have it goes without, and the record says so."""
        if context.client_workdir is None or name not in OF_HOSTS:
            return
        workdir = context.workdir_for_client
        why = self.machine.monitors[name].why_unavailable(workdir.host, interval_of(name, spec, 0.0), spec.options)
        if why is None:
            place = Place(workdir, around(workdir.host, {}, with_tare=False), name, CLIENT)
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
        """`place`: elsewhere than on the host of the SUT or of its first node."""
        seconds = parameters.warmup_s + parameters.measure_s + parameters.cooldown_s
        place = place or Place(context.workdir, self.watched, name)
        workdir = place.workdir
        scene = MonitorContext(
            host=workdir.host,
            directory=f"{workdir.raw}/{DIRECTORY}/{name}",
            interval_s=interval_of(place.monitor, spec, seconds),
            most_s=_SPARE * seconds + _SPARE_S,
            watched=place.watched,
            options=spec.options,
        )
        monitor, ledger = self.machine.monitors[place.monitor], self.machine.ledger_on(workdir.host)
        watch = Watch(name, monitor, scene, spec, ledger, self.machine.clock, of=place.of)
        self.running[name] = watch
        watch.start()

    def _stop(self, names: Iterable[str]) -> None:
        """Those of one host in turn, and the hosts at once."""
        order, before = list(names), len(self.ended)
        on: dict[str, list[str]] = {}
        for name in order:
            on.setdefault(self.running[name].scene.host.name, []).append(name)
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
    """Whether a running monitor stands on the client's host, apart from the SUT's."""
    return name.startswith(ON_CLIENT)


def trace_of(raw: Path) -> Path:
    """Where a run's trace lies below its raw files."""
    return raw / DIRECTORY / TRACER / TRACE


def client_trace_of(raw: Path) -> Path:
    """The same of the trace of the client's host."""
    return raw / DIRECTORY / CLIENT_TRACER / TRACE


def node_tracer(node: str) -> str:
    """What the trace of a further node's host is called: `sut-2-host`."""
    return f"{node}-host"


def node_trace_of(raw: Path, node: str) -> Path:
    """Where it lies."""
    return raw / DIRECTORY / node_tracer(node) / TRACE


def on_node(name: str, node: str) -> str:
    """What a monitor of the study is called that works on the host of a further node: `sar-sut-2`."""
    return f"{name}-{node}"


def is_tracer(name: str) -> bool:
    """Whether it is the trace of a host, and no monitor that the study names."""
    return name in (TRACER, CLIENT_TRACER) or _NODE_TRACER.fullmatch(name) is not None


def tracer_of(settings: ArmSettings) -> MonitorSpec:
    """How the trace of an arm's runs is made."""
    return settings.monitors.get(TRACER, MonitorSpec())


def others_of(settings: ArmSettings) -> Mapping[str, MonitorSpec]:
    """The monitors of an arm beside the trace."""
    return {name: spec for name, spec in settings.monitors.items() if name != TRACER}


def interval_of(name: str, spec: MonitorSpec, seconds: float) -> float:
    """As the study says; else a second, and of a trace of so many seconds a tenth of one, more if it is long."""
    if spec.interval_s is not None:
        return spec.interval_s
    if name != TRACER:
        return INTERVAL_S
    return next((each for each in _INTERVALS_S if seconds / each <= MOST_SAMPLES), _INTERVALS_S[-1])


def lacking_monitors(plan: Plan, monitors: Mapping[str, Monitor], host: Host) -> Mapping[str, str]:
    """Monitor that the runs of a plan cannot do without → why this host cannot have it."""
    lacking = {}
    for settings in (arm.settings for arm in plan.study.arms):
        for name, spec in {TRACER: tracer_of(settings), **others_of(settings)}.items():
            why = monitors[name].why_unavailable(host, interval_of(name, spec, 0.0), spec.options)
            if why is not None and not (spec.optional and name != TRACER):
                lacking[name] = why
    return lacking
