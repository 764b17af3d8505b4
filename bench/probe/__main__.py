"""What tare-probe costs beside the tools that it replaces, as ratios within one run.

    python -m bench.probe --probe target/x86_64-unknown-linux-gnu/release/tare-probe --seconds 12

Every tool samples once a second. Its cost is the CPU time of its processes and, for tools that ask the engine, what
the engine's daemons use more than without it. The most expensive quarter of the seconds is left out, because others
may use the machine and its engine too. tare-probe and the floor are watched for whole tens of seconds instead and
keep them all: tare-probe's writer works every ten seconds.

`floor` is the least that can be spent: it reads the same files of control groups as tare-probe at the same times,
and throws the bytes away. Needs root and a container engine; starts ten idle containers and removes them. $CADVISOR
names the program of cAdvisor, if any.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.probe.containers import CONTAINERS, containers, group_of
from bench.probe.costs import RunContext
from bench.probe.rates import WHOLE_SECONDS_HZ, docker_stats_hz, scraped_hz
from bench.probe.servers import CADVISOR_PORT, NODE_EXPORTER_PORT, cadvisor, metrics_of, node_exporter, scrape
from bench.probe.tables import CADVISOR, Cost, Rapid, table

RATES_S = 6.0
"""How long a tool is asked as fast as it answers."""


def compare(bench: RunContext, ids: Sequence[str]) -> list[Cost]:
    """All tools that this machine has."""
    groups = [group_of(name) for name in ids]
    long_s = bench.seconds + 60
    costs = []
    for count in (1, CONTAINERS):
        chosen = groups[:count]
        for _ in range(2):  # the ratio of the two is the point, so they take turns
            costs.append(bench.cost("floor", count, bench.probe_command("floor", chosen, 1, long_s)))
            costs.append(bench.cost("tare-probe", count, bench.probe_command("record", chosen, 1, long_s)))
        costs.append(
            bench.cost("docker stats", count, ["docker", "stats", "--no-trunc", *ids[:count]], asks_engine=True)
        )
    host = [bench.probe, "record", "--host", "--hz", "1", "--no-convert", "--out", f"{bench.scratch}/host"]
    costs.append(bench.cost("tare-probe --host", 0, host))
    for tool in (
        ["mpstat", "-P", "ALL", "1"],
        ["iostat", "-x", "1"],
        ["sar", "-u", "1"],
        ["sar", "-A", "1"],
        ["pidstat", "-u", "-r", "-d", "1"],
    ):
        if not shutil.which(tool[0]):
            continue
        costs.append(bench.cost(" ".join(tool[:-1]), 0, tool))
    if exporter := node_exporter():
        costs.append(bench.cost("node_exporter, scraped", 0, exporter, each_second=scrape(NODE_EXPORTER_PORT)))
    if command := cadvisor("1s"):
        asked = scrape(CADVISOR_PORT)
        costs.append(bench.cost(CADVISOR, CONTAINERS, command, asks_engine=True, each_second=asked))
    else:
        print("cAdvisor is left out: $CADVISOR names no program", file=sys.stderr)
    return costs


def fastest(tool: str, container: str, rapid: Rapid) -> float | None:
    """Readings a second at most; `None` where that was not measured."""
    if tool == "tare-probe":
        return rapid.ticks / rapid.seconds
    if tool == "docker stats":
        return docker_stats_hz(container, RATES_S)
    if tool.split(" ", maxsplit=1)[0] in ("mpstat", "iostat", "sar", "pidstat"):
        return WHOLE_SECONDS_HZ
    if tool.startswith("node_exporter") and (exporter := node_exporter()):
        return scraped_hz(exporter, metrics_of(NODE_EXPORTER_PORT), RATES_S)
    if tool.startswith("cAdvisor") and (command := cadvisor("10ms")):
        stamped = r'container_cpu_usage_seconds_total\{[^}]*id="/"[^}]*\} \S+ (\d+)'
        return scraped_hz(command, metrics_of(CADVISOR_PORT), RATES_S, stamped)
    return None


def main() -> None:
    """Measure, print Markdown, write JSON."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--probe", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=12.0)
    options.add_argument("--json", type=Path, help="write the figures here too")
    chosen = options.parse_args()
    if os.geteuid() != 0 or not shutil.which("docker"):
        sys.exit("bench.probe: needs root and a container engine")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch, containers() as ids:
        bench = RunContext(chosen.probe, chosen.seconds, Path(scratch))
        costs = compare(bench, ids)
        rapid = [bench.rapid(group_of(ids[0]), load) for load in (0, 10)]
        rates = {tool: fastest(tool, ids[0], rapid[0]) for tool in {cost.tool for cost in costs}}
    print(f"kernel {platform.release()}, {os.cpu_count()} CPUs, load before {os.getloadavg()[2]:.1f} (15 min)\n")
    print(table(costs, rapid, rates))
    if chosen.json:
        figures = {
            "costs": [asdict(cost) for cost in costs],
            "rapid": [asdict(run) for run in rapid],
            "fastest_hz": rates,
        }
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
