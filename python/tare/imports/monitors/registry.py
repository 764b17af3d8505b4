"""Every parser of a monitor's logs by the name of its tool."""

from __future__ import annotations

from collections.abc import Mapping

from tare.imports.monitors import MonitorLog
from tare.imports.monitors.docker_stats import DockerStats
from tare.imports.monitors.dstat import Dstat
from tare.imports.monitors.iostat import Iostat
from tare.imports.monitors.pidstat import Pidstat
from tare.imports.monitors.sar import Sar
from tare.imports.monitors.vmstat import Vmstat

MONITOR_LOGS: Mapping[str, MonitorLog] = {
    "sar": Sar(),
    "iostat": Iostat(),
    "dstat": Dstat(),
    "vmstat": Vmstat(),
    "pidstat": Pidstat(),
    "docker-stats": DockerStats(),
}
"""Tool → parser, in the order in which they are asked for a figure that several give."""


def monitor_of(text: str) -> str | None:
    """The tool whose log a text is; `None` for another text."""
    return next((name for name, parser in MONITOR_LOGS.items() if parser.recognises(text)), None)
