"""CPU time over the measure phase: of SUT, client, what lies between, and the machine, by two clocks.

The control group's own counter is read, since its processes come and go. Programs in the root cgroup have none;
their process's own times are used instead. A proxy, or a storage server, is outside of the container's cgroup and
counted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tare.deployments import Instance
from tare.deployments.cgroup.hierarchy import Cgroups, parse_cgroups, parse_proc_cgroup
from tare.deployments.network.path import CARRIERS
from tare.errors import TareError
from tare.record.load_time import LoadTime, ReportedStart, Span, locate_load
from tare.record.observation import Observation
from tare.record.usage import CpuModes, Usage
from tare.run.clock import Clock
from tare.sites import Host, Process
from tare.sites.process import TICKS_PER_S, boot_id, named, parse_stat
from tare.study.values import cpu_set

Observed = Observation | None
_NO_PROXIES: Mapping[int, Process] = {}
_READINGS = 5
_COVERED = 0.8
"""Share of a client's life that its readings must span. Its cgroup may vanish with it before the next reading, and
then the last figure is not of the whole."""
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns of the line `cpu` of /proc/stat (proc_stat(5)); guest time is part of user and nice."""


@dataclass(frozen=True)
class _Reading:
    monotonic: float
    cpu_s: float


@dataclass(frozen=True)
class _ClientUse:
    """CPU time over `over_s` seconds; `None` if the readings do not cover the client's life."""

    cpu_s: float | None
    over_s: float


@dataclass(frozen=True)
class _Moment:
    wall: float
    monotonic: float
    sut: float | None
    carriers: Mapping[tuple[int, int, int], float]
    """Node number, pid, start in ticks → CPU seconds."""
    storage: float | None
    machines: Mapping[str, CpuModes]
    client_machine: CpuModes | None


@dataclass
class Meter:
    """Reads CPU time at the start and the end of the phase; the client's also in between, as its cgroup may vanish.

    `sut`: instances of its nodes; empty if the client is itself the SUT. Then all its readings are from its
    lifetime, because deployments differ in what they leave of an ended program.
    """

    host: Host
    clock: Clock
    sut: tuple[Instance, ...]
    storages: Mapping[str, tuple[Process, ...]] = field(default_factory=dict)
    """Host → storage servers."""
    client_host: Host | None = None
    """The client's host, if not the SUT's."""
    hosts: tuple[Host, ...] = ()
    """One host for each node, `host` the first; empty if one host has all nodes."""
    _carriers: tuple[tuple[int, int], ...] = ()
    """Node number, from 0, and pid of each program that may carry connections to it: the path may be seen later."""
    _cgroups: Mapping[str, Cgroups | None] = field(default_factory=dict)
    _client: Instance | None = None
    _client_file: str | None = None
    _client_readings: list[_Reading] = field(default_factory=list)
    _gone_s: float | None = None
    """When the client was first found missing, while it was waited for."""
    _began: _Moment | None = None
    _ended: _Moment | None = None

    def __post_init__(self) -> None:
        self._carriers = tuple(
            (number, pid)
            for number, node in enumerate(self.sut)
            if node.published is not None
            for pid in _running(self._host_of(number), CARRIERS)
        )

    def begin(self, client: Instance) -> None:
        """Start: the client has just been started."""
        self._client = client
        at = self.client_host or self.host
        self._cgroups = {
            host.name: _cgroups(host) for host in {each.name: each for each in (*self._hosts, at)}.values()
        }
        self._client_file = _usage_file(at, self._cgroups[at.name], client.process.pid)
        self._began = self._moment()
        self.look()

    def look(self) -> None:
        """Read the client's CPU time again, from a file of a few bytes."""
        assert self._client is not None  # noqa: S101 - `begin` comes first
        seen = _cpu_s(self.client_host or self.host, self._client_file, self._client.process.pid)
        if seen is not None:
            self._client_readings.append(_Reading(self.clock.monotonic(), seen))
        elif self._gone_s is None:
            self._gone_s = self.clock.monotonic()

    def end(
        self,
        of_nodes: Sequence[Observed],
        of_client: Observed,
        proxies: Mapping[int, Process] = _NO_PROXIES,
    ) -> Usage | None:
        """Return the use in the phase. `of_nodes`, `of_client`: observations, for the CPUs that each may use.

        `proxies`: node number, from 0 → the program that carries its connections, by the path as seen by now.
        """
        if self._began is None:
            return None
        gone_s = self._gone_s
        if self.sut:
            self.look()
        began, ended = self._began, self._moment()
        self._ended = ended
        client, is_sut = self._client_use(gone_s), not self.sut
        on_path = [(number, proxy.pid, proxy.started_ticks) for number, proxy in proxies.items()]
        grown = {name: _grown(began.machines[name], modes) for name, modes in ended.machines.items()}
        return Usage(
            wall_s=ended.wall - began.wall,
            monotonic_s=ended.monotonic - began.monotonic,
            sut_cpu_s=client.cpu_s if is_sut else _minus(ended.sut, began.sut),
            client_cpu_s=None if is_sut else client.cpu_s,
            proxy_cpu_s=_sum_of([_minus(ended.carriers.get(each), began.carriers.get(each)) for each in on_path]),
            storage_cpu_s=_minus(ended.storage, began.storage),
            sut_cpus=self._cpus_of(of_nodes),
            client_cpus=cpus_of(of_client),
            sut_node_cpus=cpus_of(of_nodes[0]),
            began_monotonic_s=began.monotonic,
            ended_monotonic_s=ended.monotonic,
            machine=self._of_kernels(grown),
            machines=grown if self.hosts else None,
            client_machine=_grown(began.client_machine, ended.client_machine)
            if began.client_machine is not None and ended.client_machine is not None
            else None,
            sut_over_s=client.over_s if is_sut and client.cpu_s is not None else None,
        )

    def load_of(self, lasted_s: float, started_at: float | None, ahead_s: float | None = None) -> LoadTime:
        """Return when the client drove load, by its own report; called after the phase.

        `lasted_s`, `started_at`: duration and start in the client's report. `ahead_s`: seconds by which
        the client's wall clock is ahead of the SUT's monotonic clock; `None`: as on this host.
        """
        assert self._began is not None  # noqa: S101 - for the type alone
        assert self._ended is not None  # noqa: S101 - `end` comes first
        phase = Span(self._began.monotonic, self._ended.monotonic)
        own_s = self._began.wall - self._began.monotonic
        word = ReportedStart(started_at, own_s if ahead_s is None else ahead_s)
        return locate_load(phase, lasted_s, word)

    def _client_use(self, gone_s: float | None) -> _ClientUse:
        """CPU time between the client's readings, which beside a SUT must span `_COVERED` of its life.

        `gone_s`: when the client was found missing; `None`: it existed to the end.
        """
        readings = self._client_readings
        if not readings:
            return _ClientUse(None, 0.0)
        first, last = readings[0], readings[-1]
        over_s = last.monotonic - first.monotonic
        lived_s = over_s if gone_s is None else gone_s - first.monotonic
        is_whole = not self.sut or over_s >= _COVERED * lived_s
        return _ClientUse(last.cpu_s - first.cpu_s if len(readings) > 1 and is_whole else None, over_s)

    def _moment(self) -> _Moment:
        wall, monotonic = both_clocks(self.clock)
        return _Moment(
            wall=wall,
            monotonic=monotonic,
            sut=self._sut_s(),
            carriers=self._carriers_s(),
            storage=self._storage_s(),
            machines={host.name: machine_times(_text(host, "/proc/stat") or "") for host in self._hosts},
            client_machine=None
            if self.client_host is None
            else machine_times(_text(self.client_host, "/proc/stat") or ""),
        )

    def _sut_s(self) -> float | None:
        """CPU seconds of all nodes; `None` if one cannot be read."""
        used = []
        for number, node in enumerate(self.sut):
            host, pid = self._host_of(number), node.process.pid
            used.append(_cpu_s(host, _usage_file(host, self._cgroups.get(host.name), pid), pid))
        return _sum_of(used)

    def _carriers_s(self) -> dict[tuple[int, int, int], float]:
        seen = {}
        for number, pid in self._carriers:
            if raw := _read(self._host_of(number), f"/proc/{pid}/stat"):
                stat = parse_stat(raw)
                seen[number, pid, stat.started_ticks] = stat.cpu_s
        return seen

    def _storage_s(self) -> float | None:
        """CPU seconds of all storage servers, which have no children; `None` if one cannot be read."""
        return _sum_of(
            [
                _own_cpu_s(host, each.pid, each.started_ticks)
                for host in self._hosts
                for each in self.storages.get(host.name, ())
            ]
        )

    def _cpus_of(self, of_nodes: Sequence[Observed]) -> float | None:
        """CPUs of all nodes together; nodes with a common kernel share its CPUs."""
        if not self.hosts:
            return cpus_of_all(of_nodes)
        by_kernel: dict[str, list[Observed]] = {}
        for host, seen in zip(self.hosts, of_nodes, strict=True):
            by_kernel.setdefault(boot_id(host), []).append(seen)
        return _sum_of([cpus_of_all(each) for each in by_kernel.values()])

    @property
    def _hosts(self) -> tuple[Host, ...]:
        return self.hosts or (self.host,)

    def _host_of(self, number: int) -> Host:
        return self.hosts[number] if self.hosts else self.host

    def _of_kernels(self, machines: Mapping[str, CpuModes]) -> Mapping[str, float]:
        """Sum over hosts; a kernel that several hosts share counts once, since they all read the same figures."""
        if not self.hosts:
            return machines[self.host.name]
        kernels = {boot_id(host): machines[host.name] for host in self.hosts}
        modes = dict.fromkeys(mode for each in kernels.values() for mode in each)
        return {mode: sum(each.get(mode, 0.0) for each in kernels.values()) for mode in modes}


def both_clocks(clock: Clock) -> tuple[float, float]:
    """Read wall and monotonic clock at one moment: the closest of a few readings, since a machine may pause."""
    readings = []
    for _ in range(_READINGS):
        before, wall, after = clock.monotonic(), clock.wall(), clock.monotonic()
        readings.append((after - before, wall, (before + after) / 2))
    _, wall, monotonic = min(readings)
    return wall, monotonic


def machine_times(proc_stat: str) -> Mapping[str, float]:
    """Mode → seconds since boot, over all CPUs; empty if unreadable."""
    line = next((line for line in proc_stat.splitlines() if line.startswith("cpu ")), "")
    return {mode: int(ticks) / TICKS_PER_S for mode, ticks in zip(_MODES, line.split()[1:], strict=False)}


def _grown(began: Mapping[str, float], ended: Mapping[str, float]) -> Mapping[str, float]:
    return {mode: ended[mode] - began[mode] for mode in ended if mode in began}


def cpus_of_all(seen: Sequence[Observed]) -> float | None:
    """CPUs of several nodes together: all CPUs that any may run on, but at most the sum of their limits."""
    each = [cpus_of(node) for node in seen]
    known = [cpus for cpus in each if cpus is not None]
    if not known or len(known) < len(each):
        return None
    allowed = frozenset[int]().union(
        *(cpu_set(node.cpus_allowed) for node in seen if node is not None and node.cpus_allowed)
    )
    return min(float(len(allowed)), sum(known))


def cpus_of(seen: Observed) -> float | None:
    """CPUs' worth of time that an observed side may use: its quota, or the number of its allowed CPUs."""
    if seen is None or not seen.cpus_allowed:
        return None
    allowed = float(len(cpu_set(seen.cpus_allowed)))
    return allowed if seen.cpu_quota is None else min(seen.cpu_quota, allowed)


def _usage_file(host: Host, cgroups: Cgroups | None, pid: int) -> str | None:
    """Return cpuacct.usage (v1) or cpu.stat (v2) of the process's own cgroup; `None` in a root cgroup."""
    paths = parse_proc_cgroup(_text(host, f"/proc/{pid}/cgroup") or "")
    for controller, name in (("cpuacct", "cpuacct.usage"), ("cpu", "cpu.stat")):
        mount = None if cgroups is None else cgroups.mount_of(controller)
        path = next((path for names, path in paths.items() if controller in names.split(",")), paths.get(""))
        if mount and path and path != "/" and (controller == "cpuacct" or cgroups_unified(cgroups)):
            return f"{mount}/{path.strip('/')}/{name}"
    return None


def cgroups_unified(cgroups: Cgroups | None) -> bool:
    """Whether cpu.stat has the CPU time used, as in v2 only."""
    return cgroups is not None and all(hierarchy.unified for hierarchy in cgroups.hierarchies)


def _cpu_s(host: Host, file: str | None, pid: int) -> float | None:
    if file is None:
        raw = _read(host, f"/proc/{pid}/stat")
        return parse_stat(raw).cpu_s if raw else None
    text = _text(host, file)
    if text is None:
        return None
    if file.endswith("cpuacct.usage"):
        return int(text) / 1e9
    used = next((line.split()[1] for line in text.splitlines() if line.startswith("usage_usec ")), None)
    return None if used is None else int(used) / 1e6


def _cgroups(host: Host) -> Cgroups | None:
    try:
        return parse_cgroups(_text(host, "/proc/self/mountinfo") or "")
    except TareError:
        return None


def _own_cpu_s(host: Host, pid: int, started_ticks: int) -> float | None:
    """CPU seconds of this process, without its children."""
    raw = _read(host, f"/proc/{pid}/stat")
    stat = parse_stat(raw) if raw else None
    return stat.cpu_s if stat and stat.started_ticks == started_ticks else None


def _running(host: Host, names: Iterable[str]) -> tuple[int, ...]:
    try:
        return tuple(named(host, names))
    except TareError:
        return ()  # no pgrep: what carries connections stays unknown


def _sum_of(parts: Sequence[float | None]) -> float | None:
    """Sum of all parts; `None` if there are none or one is unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def _minus(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else later - earlier


def _text(host: Host, path: str) -> str | None:
    raw = _read(host, path)
    return None if raw is None else raw.decode(errors="replace").strip()


def _read(host: Host, path: str) -> bytes | None:
    """Read a file; `None` also for one that vanishes meanwhile."""
    try:
        return host.read(path)
    except (TareError, OSError):
        return None
