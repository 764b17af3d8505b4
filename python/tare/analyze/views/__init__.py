"""Views: what other monitors would have printed, computed from one trace of tare-probe.

Each tool has its own file, with its formulas as pure functions and citations of its source. `VIEWS` lists the
tools.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze.views.cadvisor import CADVISOR
from tare.analyze.views.docker_stats import DOCKER_STATS
from tare.analyze.views.iostat import IOSTAT
from tare.analyze.views.kernel import KERNEL
from tare.analyze.views.metrics_server import METRICS_SERVER
from tare.analyze.views.model import View
from tare.analyze.views.mpstat import MPSTAT
from tare.analyze.views.pidstat import PIDSTAT
from tare.analyze.views.podman_stats import PODMAN_STATS
from tare.analyze.views.sar import SAR

VIEWS: Mapping[str, View] = {
    view.tool: view
    for view in (KERNEL, DOCKER_STATS, PODMAN_STATS, CADVISOR, METRICS_SERVER, MPSTAT, SAR, PIDSTAT, IOSTAT)
}
