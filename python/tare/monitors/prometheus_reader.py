"""Ask the Prometheus of cadvisor_server.py for all data of one control group, as one JSON document.

    python3 -I -S prometheus_reader.py DIRECTORY INTERVAL_S RANGE_S NAME

The control group is the one under NAME in DIRECTORY/server.json. `raw`: each metric as scraped, with cAdvisor's own
time stamps. `rate`: answers of rate() over RANGE_S, one every INTERVAL_S. `clocks`: CLOCK_MONOTONIC and
CLOCK_REALTIME at the same moment, when the servers were started and now.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

METRICS = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_fs_reads_bytes_total",
    "container_fs_writes_bytes_total",
)
ANSWER_S = 30.0
MOST_POINTS = 10_000
"""Most points of one answer; Prometheus refuses more than 11,000."""


def ask(address: str, path: str, **parameters: str) -> list[Any]:
    """Return the result of a query."""
    url = f"{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310 - http, as made here
        result: list[Any] = json.load(answer)["data"]["result"]
    return result


def rates(address: str, expression: str, began_s: float, ended_s: float, every_s: float) -> list[list[Any]]:
    """`[time, value]` pairs of one series, queried in parts."""
    values: list[list[Any]] = []
    while began_s <= ended_s:
        last_s = min(ended_s, began_s + (MOST_POINTS - 1) * every_s)
        window = {"start": f"{began_s:.3f}", "end": f"{last_s:.3f}", "step": f"{every_s:g}"}
        for series in ask(address, "query_range", query=expression, **window):
            values += series["values"]
        began_s = last_s + every_s
    return values


def main() -> None:
    """Print all data of the control group."""
    directory, every_s, range_s, name = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    server = json.loads((directory / "server.json").read_text())
    now = {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns()}
    address, group = server["address"], server["groups"].get(name)
    began_s, ended_s = server["clocks"]["realtime_ns"] / 1e9, now["realtime_ns"] / 1e9
    raw: dict[str, list[Any]] = {}
    rows: list[list[Any]] = []
    if group is not None:
        quoted = json.dumps(group)
        since = f"{int(ended_s - began_s) + 2}s"
        for metric in METRICS:
            raw[metric] = ask(address, "query", query=f"{metric}{{id={quoted}}}[{since}]", time=f"{ended_s:.3f}")
        counter = f"{METRICS[0]}{{id={quoted}}}[{range_s:g}s]"
        rows = rates(address, f"sum by (id) (rate({counter}))", began_s, ended_s, every_s)
    answer = {"clocks": [server["clocks"], now], "group": group, "range_s": range_s, "raw": raw, "rate": rows}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
