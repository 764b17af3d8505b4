"""What a run used, computed once: from the meter's readings and from the run's traces."""

from __future__ import annotations

from dataclasses import replace

from tare.record.trace import Traces
from tare.record.turns import Measured, Turns
from tare.record.usage import Usage
from tare.run.usage.disk import disk_limit_in, disk_use_in, sut_io_in
from tare.run.usage.engine import engine_cpu_in, output_in
from tare.run.usage.saturation import saturation_in
from tare.run.usage.turns import in_turns


def with_traces(
    usage: Usage | None, traces: Traces, disk_limit_per_s: int | None, turns: Turns | None = None
) -> Usage | None:
    """Complete a meter's readings by what the traces show of the phase, or of the arm's turns in it.

    `disk_limit_per_s`: the limit on the SUT's disk operations, if it has one.
    """
    if usage is None or (whole := usage.phase) is None:
        return usage
    usage = in_turns(usage, traces, turns)
    phase: Measured = whole if usage.turns_s is None or turns is None else turns
    moved = sut_io_in(traces, phase)
    return replace(
        usage,
        sut_read_bytes=moved.read_bytes,
        sut_write_bytes=moved.written_bytes,
        sut_io_source=moved.source,
        saturation=saturation_in(traces, usage, phase),
        disk=disk_use_in(traces, phase),
        engine_cpu_s=engine_cpu_in(traces, phase),
        sut_output_bytes=output_in(traces, phase),
        disk_limit=disk_limit_in(traces, usage.load or whole, disk_limit_per_s),
    )
