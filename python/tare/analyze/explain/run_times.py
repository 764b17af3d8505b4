"""Times of one operation of a run: CPU time by side and component, waiting, idle CPUs, and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from tare.analyze.derived import sut_cpu_s
from tare.analyze.explain.components import components
from tare.analyze.explain.sampled import CARRIERS, OF_OPERATION, CpuSide, Sampled, between_hosts, sampled
from tare.analyze.explain.waiting import Wait, waited
from tare.analyze.hosts import OtherHost, other_hosts
from tare.errors import StoreError
from tare.monitors.profile.stacks import PROFILE, read_profile
from tare.parquet import readable
from tare.record.raw_files import CLIENT, DIRECTORY, ON_CLIENT, on_node, trace_of
from tare.record.run_record import RunRecord
from tare.record.trace import Elsewhere, growth, read_all
from tare.record.turns import Measured
from tare.store.trace import is_trace

_US = 1e6
RawFile = Callable[[RunRecord, str], Path]
"""Function that gives the path of a record's raw file."""


@dataclass(frozen=True)
class RunTimes:
    """Microseconds for one operation. Unknown figures are absent or `None`.

    `cpu_us`: (side, component) → sampled CPU time; `None` without a profile. `counted_us`: side → CPU time by the
    kernel's counters, which know no components. `waited_us`: (side, kind) → time in which a thread waited.
    `idle_us`: idle CPU time. `daemons_us`: CPU time of the engine's daemons. `others_us`: CPU time of other
    programs and of tare. `machine_us`: time of all CPUs together, which is the sum of the operation's, the
    daemons', others' and idle time except for lost samples. `carriers_us`: CPU time of `CpuSide.HELPER` by program.
    `counts`: events for one operation. `lacks`: what is missing, and why.
    """

    operations: float
    cpu_us: Mapping[tuple[CpuSide, str], float] | None
    counted_us: Mapping[CpuSide, float]
    waited_us: Mapping[tuple[str, Wait], float]
    counts: Mapping[str, float]
    idle_us: float | None = None
    daemons_us: float | None = None
    others_us: float | None = None
    machine_us: float | None = None
    stacks_us: Mapping[tuple[CpuSide, str], float] = field(default_factory=dict)
    carriers_us: Mapping[str, float] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()

    @property
    def total_us(self) -> float | None:
        """CPU time of one operation over all its sides; by the counters if nothing was sampled."""
        if self.cpu_us is not None:
            return sum(used for (side, _), used in self.cpu_us.items() if side in OF_OPERATION)
        return sum(self.counted_us.values()) if CpuSide.SERVER in self.counted_us else None


def run_times(record: RunRecord, raw: RawFile) -> RunTimes | None:
    """Compute the times of a good run; `None` if its operations or its measure phase are unknown."""
    operations, phase = record.measurement and record.measurement.operations, record.measured_time
    if not operations or phase is None or phase.seconds <= 0:
        return None
    trace, others = trace_of(raw(record, "")), other_hosts(record)
    traces = [Elsewhere(raw(record, host.trace), host.ahead_s, host.of) for host in others]
    one_kernel = record.between is not None and record.between.one_boot
    nodes = [each for each in traces if each.node != CLIENT]
    profile, lacks = _profile(record, raw, phase)
    lacks = (*lacks, *_blocks(record))
    there = [each for each in nodes if is_trace(each.trace)]
    counts: Mapping[str, float] = {}
    waits: Mapping[tuple[str, Wait], float] = {}
    try:
        with readable(f"the trace of {record.run_id}"):
            waits = waited(trace, phase, traces)
            if len(there) < len([node for node in (record.nodes or {}).values() if node.on]) - 1:
                lacks = (*lacks, "events were not counted on every node's host")
            else:
                counts = _counts(trace, phase, nodes, one_kernel=one_kernel)
    except StoreError as error:
        lacks = (*lacks, f"waiting or events are missing: {error}")
    each = _US / operations
    return replace(
        times_of(operations, phase, profile, waits),
        counted_us={side: used * each for side, used in _counted(record).items()},
        counts={name: count / operations for name, count in counts.items()},
        lacks=lacks,
    )


def _blocks(record: RunRecord) -> tuple[str, ...]:
    """Sentence on why the SUT's block requests were not counted, and the other source of its bytes; or empty."""
    probe = (record.monitors or {}).get("probe")
    if probe is None or (why := probe.block_refused) is None:
        return ()
    source = record.usage and record.usage.sut_io_source
    instead = (
        "nothing tells the SUT's bytes on disks" if source is None else f"{source} tells the SUT's bytes on disks"
    )
    return (f"block requests were not counted ({why}); {instead}",)


def times_of(
    operations: float, phase: Measured, profile: Sampled | None, waits: Mapping[tuple[str, Wait], float]
) -> RunTimes:
    """Compute times from samples and waits of the phase, both in seconds."""
    each = _US / operations
    waited_us = {key: seconds * each for key, seconds in waits.items()}
    if profile is None:
        return RunTimes(operations, cpu_us=None, counted_us={}, waited_us=waited_us, counts={})
    # The sampled part represents the whole phase, and kept samples represent lost ones.
    whole = phase.seconds / profile.seconds / (1 - profile.lost) * each
    return RunTimes(
        operations,
        cpu_us={key: used * whole for key, used in profile.cpu_s.items()},
        counted_us={},
        waited_us=waited_us,
        counts={},
        idle_us=profile.idle_s * whole,
        daemons_us=profile.of_side(CpuSide.ENGINE) * whole,
        others_us=sum(profile.of_side(side) for side in (CpuSide.TARE, CpuSide.OTHER)) * whole,
        machine_us=profile.cpus * phase.seconds * each,
        stacks_us={key: used * whole for key, used in profile.stacks.items()},
        carriers_us={program: used * whole for program, used in profile.carriers.items()},
    )


MOST_LOST = 0.05
"""Share of lost samples above which components may have lost unequal shares."""
_LEAST_SAMPLED = 0.5
_PROFILE = "profile"
_STILL = "CPU time by side, from the kernel's counters, and waiting are shown"


def _profile(record: RunRecord, raw: RawFile, phase: Measured) -> tuple[Sampled | None, tuple[str, ...]]:
    """Read the samples of a run; also returns sentences on what is missing."""
    answer = (record.monitors or {}).get(_PROFILE)
    if answer is None:
        return None, (
            "no stacks were sampled; `tare run --profile`, or `monitors: {profile: {}}` in the study, does",
        )
    if answer.absent is not None:
        return None, (f"no stacks were sampled: {answer.absent}; {_STILL}",)
    try:
        with readable(f"the profile of {record.run_id}"):
            stacks = sampled(read_profile(raw(record, f"{DIRECTORY}/profile/{PROFILE}")), phase, components())
    except StoreError as error:
        return None, (f"the stacks of {record.run_id} are missing: {error}",)
    lacks = []
    one_kernel = record.between is not None and record.between.one_boot
    for host in other_hosts(record):
        there, why = _on_host(host, record, raw, phase)
        lacks += [] if why is None else [why]
        own = CpuSide.CLIENT if host.of == CLIENT else CpuSide.SERVER
        stacks = stacks if there is None else between_hosts(stacks, there, one=one_kernel, own=own)
    if stacks.seconds < _LEAST_SAMPLED * phase.seconds:
        return None, (f"less than half of the measure phase of {record.run_id} was sampled",)
    if stacks.without_symbols is not None:
        lacks.append(
            f"functions of the kernel have no names, so there are no components: {stacks.without_symbols}; "
            "own code and the kernel as a whole are shown by side"
        )
    if stacks.lost > MOST_LOST:
        lacks.append(f"{100 * stacks.lost:.0f} % of the samples of {record.run_id} were lost")
    return stacks, tuple(lacks)


def _on_host(
    host: OtherHost, record: RunRecord, raw: RawFile, phase: Measured
) -> tuple[Sampled | None, str | None]:
    """Read the samples of another host, or return why it has none."""
    name = f"{ON_CLIENT}{_PROFILE}" if host.of == CLIENT else on_node(_PROFILE, host.of)
    answer = (record.monitors or {}).get(name)
    where = "the client's host" if host.of == CLIENT else f"the host of {host.of}"
    if answer is None:
        return None, f"no stacks were sampled on {where}"
    if answer.absent is not None:
        return None, f"no stacks were sampled on {where}: {answer.absent}"
    try:
        with readable(f"the profile of {record.run_id} on {where}"):
            profile = read_profile(raw(record, f"{DIRECTORY}/{name}/{PROFILE}"))
            samples = sampled(profile, phase.shifted(host.ahead_s), components())
    except StoreError as error:
        return None, f"the stacks of {where} in {record.run_id} are missing: {error}"
    if samples.seconds < _LEAST_SAMPLED * phase.seconds:
        return None, f"less than half of the measure phase of {record.run_id} was sampled on {where}"
    return samples, None


def _counted(record: RunRecord) -> Mapping[CpuSide, float]:
    """CPU seconds of each side by the counters of control groups and processes."""
    counted = {
        CpuSide.SERVER: sut_cpu_s(record),
        CpuSide.CLIENT: record.usage and record.usage.client_cpu_s,
        CpuSide.HELPER: record.usage and record.usage.proxy_cpu_s,
    }
    return {side: used for side, used in counted.items() if used is not None}


_COUNTERS = (
    ("context switches", "system", "t0_ns", ("context_switches",), None),
    ("interrupts", "system", "t0_ns", ("interrupts",), None),
    ("receive softirqs", "system", "t0_ns", ("softirq_net_rx",), None),
    ("packets of the server", "interface", "t0_ns", ("rx_packets", "tx_packets"), r"^sut(-\d+)?$"),
    ("read and write calls of the server", "process", "io_t0_ns", ("read_calls", "write_calls"), r"^sut(-\d+)?$"),
    *(
        (f"read and write calls of {program}", "process", "io_t0_ns", ("read_calls", "write_calls"), f"^{target}$")
        for target, program in CARRIERS.items()
    ),
    *(
        (f"bytes through {program}", "process", "io_t0_ns", ("written_call_bytes",), f"^{target}$")
        for target, program in CARRIERS.items()
    ),
    ("bytes of the server's log output", "process", "io_t0_ns", ("read_call_bytes",), "^shim$"),
    ("page faults of the server", "process", "stat_t0_ns", ("minor_faults", "major_faults"), r"^sut(-\d+)?$"),
    ("throttled periods of the server", "cgroup", "throttle_t0_ns", ("throttled_periods",), r"^sut(-\d+)?$"),
)
"""Name of the count, table of the trace, its column of times, columns to add up, and pattern of targets."""


def _counts(trace: Path, phase: Measured, nodes: Sequence[Elsewhere], *, one_kernel: bool) -> Mapping[str, float]:
    """Events in the measure phase. Counts of hosts cover all hosts of the SUT, each kernel once."""
    counts: dict[str, float] = {}
    tables: dict[str, pl.DataFrame | None] = {}
    for name, table, at, columns, of in _COUNTERS:
        if table not in tables:
            tables[table] = read_all(trace, () if one_kernel and of is None else nodes, table)
        rows = tables[table]
        if rows is None:
            continue
        rows = rows if of is None else rows.filter(pl.col("name").cast(pl.String).str.contains(of))
        grown = [growth(rows, at, column, phase) for column in columns] if len(rows) else []
        known = [each for each in grown if each is not None]
        if known and len(known) == len(columns):
            counts[name] = sum(known)
    return counts
