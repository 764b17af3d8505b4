"""Write the Grafana dashboard of tare-probe and what provisions it.

    python -m tools.grafana_dashboard [--check]

`--check` writes nothing and fails where a file differs from what would be written.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, StackingMode, TooltipDisplayMode, VisibilityMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh
from ruamel.yaml import YAML

from tools.grafana_panels import SECTIONS, Shown

FOLDER = Path(__file__).resolve().parent.parent / "grafana"
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
WIDTH, HEIGHT = 12, 8
"""Of a panel: Grafana's grid has 24 columns."""
PROMETHEUS_UID = "tare-prometheus"
DASHBOARDS = "/var/lib/grafana/dashboards/tare"


def panel(shown: Shown, number: int) -> timeseries.Panel:
    """One panel over time."""
    built = (
        timeseries.Panel()
        .id(number)
        .title(shown.title)
        .description(shown.meaning)
        .unit(shown.unit)
        .datasource(SOURCE)
        .span(WIDTH)
        .height(HEIGHT)
        .min(0)
        .line_width(1)
        .fill_opacity(30 if shown.stacked else 0)
        .show_points(VisibilityMode.NEVER)
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .legend(common.VizLegendOptions().show_legend(show_legend=True).display_mode(LegendDisplayMode.LIST))
    )
    if shown.stacked:
        built.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    for at, line in enumerate(shown.lines):
        query = prometheus.Dataquery().expr(line.expression).legend_format(line.legend).ref_id(chr(ord("A") + at))
        built.with_target(query)
    return built


def board() -> dashboard.Dashboard:
    """All sections, with the Prometheus and the names to choose from."""
    built = (
        dashboard.Dashboard("tare-probe")
        .uid("tare-probe")
        .description("Counters of host, control groups and processes, as tare-probe serves them.")
        .tags(["tare"])
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("5s")
        .time("now-15m", "now")
        .with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("name")
            .label("Name")
            .datasource(SOURCE)
            .query('label_values({__name__=~"tare_cgroup_pids|tare_process_threads"}, name)')
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(multi=True)
            .include_all(include_all=True)
            .all_value(".*")
        )
    )
    numbers = count(1)
    for section in SECTIONS:
        built.with_row(dashboard.Row(section.title).id(next(numbers)))
        for shown in section.panels:
            built.with_panel(panel(shown, next(numbers)))
    return built


def files() -> Mapping[str, str]:
    """Every file of the folder that is generated: name → text."""
    return {
        "dashboards/tare-probe.json": json.dumps(board().build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n",
        "provisioning/dashboards/tare.yaml": as_yaml(
            {
                "apiVersion": 1,
                "providers": [
                    {
                        "name": "tare",
                        "type": "file",
                        "disableDeletion": True,
                        "options": {"path": DASHBOARDS},
                    }
                ],
            }
        ),
        "provisioning/datasources/tare.yaml": as_yaml(
            {
                "apiVersion": 1,
                "datasources": [
                    {
                        "name": "Prometheus of tare",
                        "uid": PROMETHEUS_UID,
                        "type": "prometheus",
                        "access": "proxy",
                        "url": "http://127.0.0.1:9090",
                        # What $__rate_interval is computed from: Prometheus scrapes this often.
                        "jsonData": {"timeInterval": "1s", "httpMethod": "POST"},
                    }
                ],
            }
        ),
        "prometheus.yml": as_yaml(
            {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [{"job_name": "tare-probe", "static_configs": [{"targets": ["127.0.0.1:9477"]}]}],
            }
        ),
    }


def as_yaml(tree: Mapping[str, object]) -> str:
    """YAML that says where it comes from."""
    text = io.StringIO()
    YAML().dump(tree, text)
    return f"# Written by tools/grafana_dashboard.py.\n{text.getvalue()}"


def main() -> None:
    """Write the files, or tell which differ."""
    stale = [
        name
        for name, text in files().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    if sys.argv[1:] == ["--check"]:
        if stale:
            sys.exit(f"grafana/: not what tools/grafana_dashboard.py writes, so run it: {', '.join(stale)}")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    for name in stale:
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files()[name])


if __name__ == "__main__":
    main()
