"""`iostat -x`: activity of the host's block devices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess, sysstat
from tare.monitors.samples import Row, table
from tare.requirements import Requirement

_FIELDS = {
    "r/s": "reads", "w/s": "writes", "f/s": "flushes", "rkB/s": "read_kib", "wkB/s": "written_kib",
    "rrqm/s": "reads_merged", "wrqm/s": "writes_merged", "r_await": "read_await", "w_await": "write_await",
    "f_await": "flush_await", "aqu-sz": "queue", "util": "util",
}  # fmt: skip


class Iostat:
    """One subject for each device. `-y` leaves out the first report, which is the average since boot."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = (sysstat.requirement("iostat"),)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval."""
        return sysstat.interval_fault("iostat", interval_s)

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One program."""
        return (sysstat.program(context, "iostat", "-o", "JSON", "-x", "-d", "-t", "-y"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """It watches only the host."""
        return None

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        """Read the JSON output."""
        samples = list(sysstat.statistics(directory, "iostat", context.interval_s))
        rows = [
            Row(name, disk["disk_device"], moment, value)
            for moment, sample in samples
            for disk in sample["disk"]
            for name, value in sysstat.named(disk, _FIELDS)
        ]
        return Reading(len(samples), table("iostat", rows), {})
