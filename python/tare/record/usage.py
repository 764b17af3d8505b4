"""What a run used in its measure phase: CPU time, disks, and how near each side was to its limits.

`None`: not readable, or not present; never zero. Older records lack the figures that were added later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from tare.record.load_time import LoadTime, Span

CpuModes = Mapping[str, float]
"""Mode of /proc/stat (`user` to `steal`) → seconds, summed over CPUs."""


@final
@dataclass(frozen=True, slots=True)
class Saturation:
    """CPU use of one side while it ran in the measure phase, from the trace.

    With several nodes, each value is that of the known node nearest to its limit; for `busy` also the value of all
    nodes together, which may share CPUs.
    """

    cpus: float | None = None
    """CPU time that the side could use, in CPUs: what it may use, but no more than its threads."""
    busy: float | None = None
    """Share of `cpus` that it used."""
    waiting: float | None = None
    """Share of the time in which one of its threads waited for a CPU (PSI, Documentation/accounting/psi.rst)."""
    throttled: float | None = None
    """Share of its active enforcement periods in which its quota ran out."""
    waiting_io: float | None = None
    """Share of the time in which one of its threads waited for I/O (PSI)."""


@final
@dataclass(frozen=True, slots=True)
class SaturationOfSides:
    """Saturation of each side; `None` for a side that the trace does not cover."""

    sut: Saturation | None = None
    """Saturation of the SUT."""
    client: Saturation | None = None
    """Saturation of the client."""


@final
@dataclass(frozen=True, slots=True)
class DiskUse:
    """The host's block device that was busy longest in the measure phase, from the trace."""

    name: str
    """Name of the device."""
    busy: float | None = None
    """Share of the time with a request in flight."""
    depth: float | None = None
    """Mean number of requests in flight: by Little's law their summed times over the length of the phase."""
    reads_per_s: float | None = None
    """Read requests per second."""
    writes_per_s: float | None = None
    """Write requests per second."""
    read_bytes_per_s: float | None = None
    """Bytes read per second."""
    written_bytes_per_s: float | None = None
    """Bytes written per second."""
    read_ms: float | None = None
    """Mean time of one read request."""
    write_ms: float | None = None
    """Mean time of one write request."""


@final
@dataclass(frozen=True, slots=True)
class DiskLimit:
    """The limit on the SUT's disk operations (`limits.disk_iops`), and how much of the time it held the SUT up.

    Cgroup v1 counts operations as they reach the limit (`blk_should_throtl` in block/blk-throttle.h): a burst of a
    hundred delays everything behind it, so arrivals are modelled as a queue that empties at the limit's rate. V2
    counts behind the limit, where that queue is short. The disk does not see what waits for a limit: it may be idle
    (`DiskUse`) while everything waits.
    """

    per_s: int
    """The limit, on reads and on as many writes."""
    used: float | None = None
    """Share of the generator's time (`driven`; in older records of the whole phase) in which the limit delayed
    reads or writes, or they came at its rate. The requests are modelled as a queue that empties at that rate, in
    steps of 0.2 s, and the larger of reads and writes counts (in records without `driven`: the used share of the
    limit in each second). With several nodes, the value of the node nearest to its limit."""


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """Use of CPUs and disks over the measure phase, from the client's start to its end.

    For an arm that took turns (`turns_s`): in its measured turns, from the trace.
    """

    wall_s: float | None = None
    """Length of the phase by the wall clock."""
    monotonic_s: float | None = None
    """The same time by the monotonic clock."""
    sut_cpu_s: float | None = None
    """CPU time of the SUT's control group (v1 `cpuacct.usage`, v2 `cpu.stat`), or of the process alone if it is in
    the root group. With several nodes, the sum. For a workload without a database it is read ten times per second,
    because the control group disappears with the program."""
    client_cpu_s: float | None = None
    """CPU time of the client, read ten times per second, because its control group disappears with it; `null` for a
    workload without a database."""
    proxy_cpu_s: float | None = None
    """CPU time of the program that carried the connections (docker-proxy, rootlessport, slirp4netns, pasta), in
    steps of 10 ms; `null` if there was none."""
    sut_cpus: float | None = None
    """CPU time that the SUT may use, in CPUs: its quota, or the CPUs that it may run on; with several nodes the
    sum, but no more than the CPUs of their hosts."""
    client_cpus: float | None = None
    """CPU time that the client may use, in CPUs."""
    machine: CpuModes | None = None
    """Mode of /proc/stat (`user` to `steal`) → seconds summed over all CPUs."""
    storage_cpu_s: float | None = None
    """CPU time of the process that serves the SUT's data (storage `nfs`), in steps of 10 ms; `null` without one."""
    sut_node_cpus: float | None = None
    """CPU time that one node of the SUT may use, in CPUs."""
    sut_over_s: float | None = None
    """Time from the first to the last reading of `sut_cpu_s`, for a workload without a database, which takes its
    counter along when it ends; `null` if that is the whole phase. `sut_cpu_s` times duration over this is the CPU
    time of the whole phase."""
    began_monotonic_s: float | None = None
    """Start of the phase on the host's CLOCK_MONOTONIC, the clock of the trace."""
    ended_monotonic_s: float | None = None
    """End of the phase on that clock."""
    sut_read_bytes: float | None = None
    """Bytes that the SUT read from block devices, from the trace; assumed even between two samples. `null`: no
    source had any values, which is not zero."""
    sut_write_bytes: float | None = None
    """Bytes that the SUT wrote to block devices, from the same source."""
    sut_io_source: str | None = None
    """The source of both. In order of preference: `tp_btf/block_rq_issue`, `control group` (v1's throttle files or
    v2's `io.stat`), `BFQ`, `/proc/PID/io`. On cgroup v1 the kernel charges later writeback to no group, so the
    first three miss it there; the last counts pages when a program dirties them."""
    saturation: SaturationOfSides | None = None
    """How near each side was to its limit of CPU time, from the trace."""
    disk: DiskUse | None = None
    """The host's busiest block device; `null`: no trace shows one."""
    driven: LoadTime | None = None
    """When the generator sent load. `null`: no measurement, or an older record, where windows are assumed to begin
    with the phase."""
    client_machine: CpuModes | None = None
    """As `machine`, for the client's host; `null` if that is the SUT's."""
    machines: Mapping[str, CpuModes] | None = None
    """If nodes have separate hosts: host → as `machine`, which then is the sum over their kernels."""
    sut_oom_kills: float | None = None
    """Processes in the server's control group that the kernel killed for lack of memory, in warm-up and measure
    phase; in a virtual machine, all that its kernel killed. `null` without a server, or if the kernel does not
    count them (the root group)."""
    disk_limit: DiskLimit | None = None
    """The limit on disk operations, from the trace; `null`: no limit, or no trace."""
    turns_s: float | None = None
    """Length of the arm's measured turns, which CPU times, bytes, saturation and the disk's use are of; `null`:
    they are of the whole phase."""
    idle_cpus: float | None = None
    """CPUs that the SUT used on average while other arms were driven; `null` for a run alone."""
    engine_cpu_s: float | None = None
    """CPU time of the engine's daemons and of the shims of the SUT's containers, from the trace; `null` without an
    engine."""
    sut_output_bytes: float | None = None
    """Bytes that the SUT printed, as its containers' shims read them, from the trace; `null` without a shim."""

    @property
    def over_s(self) -> float | None:
        """Length of the time that CPU times are of."""
        return self.monotonic_s if self.turns_s is None else self.turns_s

    @property
    def phase(self) -> Span | None:
        """The measure phase on the clock of the trace; `None` if unknown."""
        began, ended = self.began_monotonic_s, self.ended_monotonic_s
        return None if began is None or ended is None else Span(began, ended)

    @property
    def load(self) -> Span | None:
        """When the generator sent load; `None` if unknown."""
        return None if self.driven is None else Span(self.driven.began_monotonic_s, self.driven.ended_monotonic_s)
