"""`mpstat -P ALL`: where the time of each CPU went."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.monitors import Handed, Program, Reading, Scene, Watched, sysstat
from tare.monitors.samples import Row, table
from tare.sites import Host

_FIELDS = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")


class Mpstat:
    """One subject a CPU, and `all`."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    tells_cost: ClassVar[bool] = False

    def lacks(self, host: Host, interval_s: float, options: Mapping[str, str | int | float | bool]) -> str | None:  # noqa: ARG002 - the contract's
        """Sysstat."""
        return sysstat.lacks(host, "mpstat", interval_s)

    def programs(self, scene: Scene) -> tuple[Program, ...]:
        """One."""
        return (sysstat.program(scene, "mpstat", "-o", "JSON", "-P", "ALL"),)

    def hand(self, scene: Scene, later: tuple[Watched, ...]) -> Handed | None:  # noqa: ARG002 - the contract's
        """It looks at the host alone."""
        return None

    def harvest(self, scene: Scene) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """Nothing."""
        return {}

    def read(self, scene: Scene, directory: Path) -> Reading:
        """Its JSON."""
        samples = list(sysstat.statistics(directory, "mpstat", scene.interval_s))
        rows = [
            Row(name, cpu["cpu"], moment, value)
            for moment, sample in samples
            for cpu in sample["cpu-load"]
            for name, value in sysstat.named(cpu, _FIELDS)
        ]
        return Reading(len(samples), table("mpstat", rows), {})
