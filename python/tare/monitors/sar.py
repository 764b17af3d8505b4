"""`sar`: the host's CPU, memory, disks and interfaces, kept in its own binary file and printed as JSON by sadf."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess, sysstat
from tare.monitors.samples import Moment, Row, moments, table
from tare.requirements import Requirement

_FILE = "sar.bin"
_JSON = "sar.json"
_VERSION = "sar.version"
_CPU = ("user", "nice", "system", "iowait", "steal", "idle")
_AVAILABLE_SINCE = (12, 7, 8)
"""First version that computes used memory from available memory (sysstat, commit 6f34da35)."""
_DISK = {"rkB": "disk_rkb", "wkB": "disk_wkb"}
_INTERFACE = {"rxkB": "rxkb", "txkB": "txkb"}


class Sar:
    """Subjects: `all` for CPU, `host` for memory, names for devices and interfaces."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = (sysstat.requirement("sar"),)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval."""
        return sysstat.interval_fault("sar", interval_s)

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One sar: sadc writes all data to a file, and sar prints CPU lines, whose times show when it sampled."""
        return (sysstat.program(context, "sar", "-u", "-o", f"{context.directory}/{_FILE}"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """It watches only the host."""
        return None

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:
        """The file as JSON, and sar's version, on which the meaning of used memory depends."""
        what = ("-u", "-r", "-d", "-p", "-n", "DEV")
        return {
            _JSON: ("sadf", "-j", "-U", f"{context.directory}/{_FILE}", "--", *what),
            _VERSION: ("sar", "-V"),
        }

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        """Read sadf's JSON; times are those of sar's printed lines, as the file has only seconds."""
        lines = sysstat.lines_of(directory, "sar")
        came = [line.came_ns for line in lines if line.text.split()[1:2] == ["all"] and line.text[:1].isdecimal()]
        try:
            statistics = json.loads((directory / _JSON).read_text())["sysstat"]["hosts"][0]["statistics"]
        except (OSError, ValueError, LookupError) as error:
            raise RunFailed(f"sadf printed incomplete JSON: {error}") from error
        # The file is read just before sar stops: its last sample may be printed but not written, or the reverse.
        both = list(zip(moments(came, context.interval_s), statistics, strict=False))
        used = "memory_used_kib_12_7_8" if _version(directory) >= _AVAILABLE_SINCE else "memory_used_kib"
        rows = [row for moment, sample in both for row in _rows(moment, sample, used)]
        return Reading(len(both), table("sar", rows), {})


def _version(directory: Path) -> tuple[int, ...]:
    """Version in the output of `sar -V`, in any language."""
    try:
        text = (directory / _VERSION).read_text()
    except OSError as error:
        raise RunFailed(f"the version of sar is not known: {error}") from error
    if match := re.search(r"(\d+)\.(\d+)\.(\d+)", text):
        return tuple(int(part) for part in match.groups())
    raise RunFailed(
        f"sar -V prints no version: {text[:60]!r}", hint="its used memory changed its meaning with 12.7.8"
    )


def _rows(moment: Moment, sample: Mapping[str, Any], used: str) -> Iterator[Row]:
    for cpu in sample.get("cpu-load", ()):
        yield from (Row(name, cpu["cpu"], moment, value) for name, value in sysstat.named(cpu, _CPU))
    memory = sample.get("memory", {})
    yield from (
        Row(name, "host", moment, value, is_gauge=True) for name, value in sysstat.named(memory, {"memused": used})
    )
    for disk in sample.get("disk", ()):
        yield from (Row(name, disk["disk-device"], moment, value) for name, value in sysstat.named(disk, _DISK))
    for one in sample.get("network", {}).get("net-dev", ()):
        yield from (Row(name, one["iface"], moment, value) for name, value in sysstat.named(one, _INTERFACE))
