"""What tare-load costs and how true it is, beside other generators: those installed, and those in `$PEERS`.

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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.load import cpu, open_loop, paced_peers
from bench.load.servers import Lab, missing

PARTS = ("cpu", "memory", "rates", "stops")
PROGRAMS = ("redis-server", "redis-benchmark", "mariadbd", "sysbench", "postgres", "pgbench", "taskset")
SHARE_OF_CPU = 0.7
"""Of all the time; memory, rates and stops take about eight minutes at most."""
START_S = 10.0
"""Until a case's server is ready."""


def main() -> None:
    """Measure and print; the tables go to `--markdown`, the figures of CPU to `--json`, where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--load", type=Path, required=True)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--minutes", type=float, default=60, help="about how long all of it may take")
    options.add_argument("--scale", type=float, default=1.0, help="share of each case's operations, to try it")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--cases", nargs="+", default=[], help="cases of CPU whose name or peer has one of these")
    options.add_argument("--markdown", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    if lacking := missing(PROGRAMS):
        sys.exit(f"bench.load: {', '.join(lacking)} not installed, so nothing was measured")
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    able = sorted(os.sched_getaffinity(0))
    began_s = time.monotonic()
    measured: dict[str, list[str]] = {}
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        lab = Lab(chosen.load.resolve(), Path(scratch), server_cpu=able[0], client_cpu=able[-1])
        if "cpu" in chosen.parts:
            measured["cpu"] = [*cpu.HEAD]
            cases = cpu.chosen(chosen.cases)
            if not cases:
                sys.exit(f"bench.load: no case has {' or '.join(map(repr, chosen.cases))} in its name or peer")
            most_s = chosen.minutes * 60 * SHARE_OF_CPU / max(1, len(cases)) - START_S
            for case in cases:
                costs = _measured(case, lab, cpu.Effort(chosen.pairs, chosen.scale, most_s))
                measured["cpu"].append(_line_of(case, costs))
                figures[f"{case.name}, {case.peer}"] = costs or {}
        if "memory" in chosen.parts:
            with _timed("memory"):
                measured["memory"] = open_loop.memory(lab)
        if "rates" in chosen.parts:
            with _timed("rates"):
                measured["rates"] = open_loop.rates(lab, min(3.0, max(1.0, chosen.minutes)), chosen.pairs)
                measured["rates of peers"] = paced_peers.rates(lab, seconds=3.0)
        if "stops" in chosen.parts:
            with _timed("stops"):
                of_peers = paced_peers.stops(lab, open_loop.STOP_RATES, open_loop.stop_row)
                measured["stops"] = [*open_loop.stops(lab), *of_peers]
    print(f"bench.load: all of it took {(time.monotonic() - began_s) / 60:.1f} min", file=sys.stderr)
    text = "\n\n".join("\n".join(table) for table in measured.values()) + "\n"
    print(text, end="")
    for path, content in ((chosen.markdown, text), (chosen.json, json.dumps(figures, indent=2) + "\n")):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Say how long it took, so that who runs a part knows what it takes."""
    began_s = time.monotonic()
    yield
    print(f"bench.load: {what}: {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def _line_of(case: cpu.Case, costs: dict[str, list[float]] | None) -> str:
    """The case's line of the table."""
    if costs is None:
        return f"| {case.name} | left out | {case.peer} | {cpu.lacking(case)} | |"
    return cpu.row(case, costs["tare-load"], costs[case.peer])


def _measured(case: cpu.Case, lab: Lab, effort: cpu.Effort) -> dict[str, list[float]] | None:
    """Costs by program; `None`: it cannot be measured here, which is said."""
    reason = cpu.lacking(case)
    print(f"bench.load: {case.name}, {case.peer}{f': left out: {reason}' if reason else ''}", file=sys.stderr)
    if reason:
        return None
    with _timed(f"{case.name}, {case.peer}"):
        return cpu.measure(case, lab, effort)


if __name__ == "__main__":
    main()
