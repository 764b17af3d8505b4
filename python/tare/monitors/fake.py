"""A monitor for tests that measures nothing: a process that sleeps until it is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.requirements import Requirement


class FakeMonitor:
    """Sleeps; new targets are written to a file, with a signal that does not end the process."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = True
    needs: ClassVar[tuple[Requirement, ...]] = ()

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Any settings will do."""
        return None

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One sleeping process."""
        return (Program("fake", ("sleep", f"{context.most_s:g}")),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """A signal that `sleep` ignores by default."""
        return TargetUpdate("later", "".join(f"{each.name}\n" for each in later), "CONT")

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """Names of targets that were handed over, of which any run has some."""
        try:
            handed = (directory / "later").read_text()
        except FileNotFoundError as error:
            raise RunFailed("the fake monitor was given no target") from error
        return Reading(samples=0, table=None, values={"handed": handed.split()})
