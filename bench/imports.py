"""Seconds that `tare import` takes for many logs of sysbench, short and long; goal: 30 s for 10,000."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench.tables import show

_GOAL_S = 30.0
_HEAD = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 16
Report intermediate results every 1 second(s)
Initializing random number generator from current time

Initializing worker threads...

Threads started!

"""
_INTERVAL = """\
[ {end}s ] thds: 16 tps: {tps:.2f} qps: {qps:.2f} (r/w/o: {read:.2f}/0.00/{other:.2f}) lat (ms,95%): 20.37 \
err/s: 0.00 reconn/s: 0.00
"""
_REPORT = """\
SQL statistics:
    queries performed:
        read:                            {reads}
        write:                           0
        other:                           {others}
        total:                           {queries}
    transactions:                        {events}   ({rate:.2f} per sec.)
    queries:                             {queries} ({qps:.2f} per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          {seconds}.0000s
    total number of events:              {events}

Latency (ms):
         min:                                    2.10
         avg:                                   {mean:.2f}
         max:                                  151.00
         95th percentile:                       20.37
         sum:                               {total:.2f}

Threads fairness:
    events (avg/stddev):           {share:.4f}/7.00
    execution time (avg/stddev):   {seconds}.0000/0.00

"""


def log(seconds: int, chance: Random) -> str:
    """A log of sysbench with a line for each second."""
    rate = chance.uniform(900, 1100)
    events = round(rate * seconds)
    lines = []
    for end in range(1, seconds + 1):
        tps = rate * chance.uniform(0.95, 1.05)
        lines.append(_INTERVAL.format(end=end, tps=tps, qps=16 * tps, read=14 * tps, other=2 * tps))
    mean = 16e3 * seconds / events
    report = _REPORT.format(
        reads=14 * events, others=2 * events, queries=16 * events, events=events, rate=events / seconds,
        qps=16 * events / seconds, seconds=seconds, mean=mean, total=mean * events, share=events / 16,
    )  # fmt: skip
    return _HEAD + "".join(lines) + report


def _import(logs: int, seconds: int) -> tuple[int, float, float]:
    """Lines of a log, seconds that its import took, and CPU seconds."""
    chance = Random(1)
    with TemporaryDirectory() as place:
        for arm in ("bare", "docker"):
            (Path(place) / "logs" / arm).mkdir(parents=True)
            for run in range(logs // 2):
                (Path(place) / "logs" / arm / f"run{run + 1}.log").write_text(log(seconds, chance))
        lines = log(seconds, chance).count("\n")
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "tare", "import", "logs", "--yes"], cwd=place, check=True)
        took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return lines, took, cpu


def main(logs: int = 10_000, markdown: Annotated[Path | None, typer.Option()] = None) -> None:
    """Import made-up logs of three lengths, and print how long each import took."""
    rows = ["| logs | lines of each | s | CPU s | goal, s |", "|---|---|---|---|---|"]
    for seconds in (4, 60, 300):
        lines, took, cpu = _import(logs, seconds)
        rows.append(f"| {logs:,} | {lines} | {took:.1f} | {cpu:.1f} | {_GOAL_S * logs / 10_000:g} |")
    show("\n".join(rows) + "\n", markdown)


if __name__ == "__main__":
    typer.run(main)
