"""`mpstat -P ALL`: how the time of each CPU was spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess, sysstat
from tare.monitors.samples import Row, table
from tare.requirements import Requirement

_FIELDS = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")


class Mpstat:
    """One subject for each CPU, and `all`."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = (sysstat.requirement("mpstat"),)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval."""
        return sysstat.interval_fault("mpstat", interval_s)

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One program."""
        return (sysstat.program(context, "mpstat", "-o", "JSON", "-P", "ALL"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """It watches only the host."""
        return None

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        """Read the JSON output."""
        samples = list(sysstat.statistics(directory, "mpstat", context.interval_s))
        rows = [
            Row(name, cpu["cpu"], moment, value)
            for moment, sample in samples
            for cpu in sample["cpu-load"]
            for name, value in sysstat.named(cpu, _FIELDS)
        ]
        return Reading(len(samples), table("mpstat", rows), {})
