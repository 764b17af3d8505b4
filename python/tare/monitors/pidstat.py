"""`pidstat -u -r -d`: processes.

It has no JSON, so one line per process (-h), with times in seconds since the epoch (-H).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess, sysstat
from tare.monitors.samples import Line, Row, cut_short, moments, table
from tare.requirements import Requirement

_FIELDS = {
    "%usr": "usr_percent", "%system": "system_percent", "%CPU": "cpu_percent", "minflt/s": "minor_faults",
    "majflt/s": "major_faults", "RSS": "resident_kib", "kB_rd/s": "read_kib", "kB_wr/s": "written_kib",
    "kB_ccwr/s": "cancelled_kib",
}  # fmt: skip
_GAUGES = {"resident_kib"}
_IO, _REFUSED = {"read_kib", "written_kib", "cancelled_kib"}, -1.0
"""Printed if /proc/PID/io cannot be read (pidstat.c, NO_PID_IO): no value."""
_LATER = "later"


class Pidstat:
    """pidstat prints all active processes; subjects are the watched ones: `NAME pid N`."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = (sysstat.requirement("pidstat"),)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval."""
        return sysstat.interval_fault("pidstat", interval_s)

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One program."""
        return (sysstat.program(context, "pidstat", "-h", "-H", "-u", "-r", "-d"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """It sees new processes anyway; only their names are recorded, with a signal that changes nothing."""
        return TargetUpdate(_LATER, "".join(f"{each.pid} {each.name}\n" for each in later), "CONT")

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        """Read the table; its heading names the columns, with the command last, as it may contain blanks.

        Raises `RunFailed` for a table without a heading, and for a line that is cut short.
        """
        names = {each.pid: each.name for each in context.watched} | _names(directory)
        lines = sysstat.lines_of(directory, "pidstat")
        heading = next((line.text.split()[1:] for line in lines if line.text.startswith("#")), None)
        if heading is None or heading[-1] != "Command":
            raise RunFailed("the table of pidstat has no heading")
        samples = _samples(lines)
        rows = _rows(samples, heading, names, context.interval_s)
        return Reading(len(samples), table("pidstat", rows), {})


def _samples(lines: Sequence[Line]) -> list[list[Line]]:
    """Samples: the heading and its lines, of which there are none if nothing ran."""
    samples: list[list[Line]] = []
    for line in lines:
        if line.text.startswith("#"):
            samples.append([line])
        elif samples and line.text[:1].isdecimal():
            samples[-1].append(line)
    return samples


def _rows(
    samples: Sequence[Sequence[Line]], heading: Sequence[str], names: Mapping[int, str], interval_s: float
) -> Iterator[Row]:
    all_moments = moments([lines[0].came_ns for lines in samples], interval_s)
    for moment, (_, *lines) in zip(all_moments, samples, strict=True):
        for line in lines:
            # The command is last: a program may give itself any name, or none.
            values = line.text.split(None, len(heading) - 1)[: len(heading) - 1]
            if len(values) < len(heading) - 1:
                raise cut_short("pidstat", line.text)
            cells = dict(zip(heading[:-1], values, strict=True))
            pid = int(cells["PID"])
            if pid in names:
                subject = f"{names[pid]} pid {pid}"
                for name, value in sysstat.named(cells, _FIELDS):
                    if value != _REFUSED or name not in _IO:
                        yield Row(name, subject, moment, value, is_gauge=name in _GAUGES)


def _names(directory: Path) -> dict[int, str]:
    try:
        lines = (directory / _LATER).read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {int(pid): name for pid, name in (line.split(" ", 1) for line in lines)}
