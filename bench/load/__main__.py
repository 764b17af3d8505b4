"""What tare-load costs and how true it is, beside redis-benchmark, sysbench and pgbench.

    python -m bench.load --load target/x86_64-unknown-linux-gnu/release/tare-load

Server and clients have a CPU each where the machine has two.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

from bench.load import cpu, open_loop
from bench.load.servers import Lab, missing

PARTS = ("cpu", "memory", "rates", "stops")
PROGRAMS = ("redis-server", "redis-benchmark", "mariadbd", "sysbench", "postgres", "pgbench", "taskset")


def main() -> None:
    """Measure and print; the tables go to `--markdown`, the figures of CPU to `--json`, where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--load", type=Path, required=True)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--scale", type=float, default=1.0, help="share of each case's operations, to try it")
    options.add_argument("--seconds", type=float, default=10.0, help="length of a run at each rate")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--markdown", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    if lacking := missing(PROGRAMS):
        sys.exit(f"bench.load: {', '.join(lacking)} not installed, so nothing was measured")
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    able = sorted(os.sched_getaffinity(0))
    tables: list[list[str]] = []
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        lab = Lab(chosen.load.resolve(), Path(scratch), server_cpu=able[0], client_cpu=able[-1])
        if "cpu" in chosen.parts:
            figures = cpu.measure(cpu.CASES, lab, chosen.pairs, chosen.scale)
            rows = [
                cpu.row(case, figures[case.name]["tare-load"], figures[case.name][case.peer]) for case in cpu.CASES
            ]
            tables.append([*cpu.HEAD, *rows])
        if "memory" in chosen.parts:
            tables.append(open_loop.memory(lab))
        if "rates" in chosen.parts:
            tables.append(open_loop.rates(lab, chosen.seconds))
        if "stops" in chosen.parts:
            tables.append(open_loop.stops(lab))
    text = "\n\n".join("\n".join(table) for table in tables) + "\n"
    print(text, end="")
    for path, content in ((chosen.markdown, text), (chosen.json, json.dumps(figures, indent=2) + "\n")):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


if __name__ == "__main__":
    main()
