"""Views: what other monitors would have printed, computed from one trace of tare-probe.

A tool is a table: of each figure that it prints the formula, an expression over the trace, and a citation of its
source. `VIEWS` lists the tools.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze.views.containers import CADVISOR, DOCKER_STATS, KERNEL, METRICS_SERVER, PODMAN_STATS
from tare.analyze.views.model import View
from tare.analyze.views.sysstat import IOSTAT, MPSTAT, PIDSTAT, SAR

VIEWS: Mapping[str, View] = {
    view.tool: view
    for view in (KERNEL, DOCKER_STATS, PODMAN_STATS, CADVISOR, METRICS_SERVER, MPSTAT, SAR, PIDSTAT, IOSTAT)
}
