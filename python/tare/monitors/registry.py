"""Every monitor by name."""

from __future__ import annotations

from collections.abc import Mapping

from tare.monitors import Monitor
from tare.monitors.cadvisor import Cadvisor
from tare.monitors.docker_stats import DockerStats
from tare.monitors.fake import FakeMonitor
from tare.monitors.iostat import Iostat
from tare.monitors.mpstat import Mpstat
from tare.monitors.pidstat import Pidstat
from tare.monitors.probe import Probe
from tare.monitors.profile.profile import Profile
from tare.monitors.sar import Sar
from tare.plugins import Implementations, breach_of

BUILT_IN: Mapping[str, Monitor] = {
    "probe": Probe(),
    "mpstat": Mpstat(),
    "iostat": Iostat(),
    "sar": Sar(),
    "pidstat": Pidstat(),
    "docker-stats": DockerStats(),
    "cadvisor": Cadvisor(),
    "profile": Profile(),
    "fake": FakeMonitor(),
}
"""Name → implementation, of the monitors that come with tare."""

MONITORS: Implementations[Monitor] = Implementations("monitor", BUILT_IN, breach_of(Monitor))
"""Name → implementation, including monitors of other packages: docs/guides/plugins.md."""
