"""A run's own time beside warm-up and measurement: on this machine alone, and between two test hosts.

    python -m bench.agent.own_time [--turns 5] [--markdown FILE]      # root

The goal is 1.5 times that of one machine. Redis under tare-load, both bare; in turns, each a `tare run` of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.tables import show
from tare.record.run_record import RunRecord
from tare.store import open_store
from tools import hosts
from tools.chaos.studies import PAIR

GOAL = 1.5
_WARMUP_S, _MEASURE_S = 1.0, 2.0
_RUN_S = 900.0


def own_time(record: RunRecord) -> float:
    """Seconds of all phases but what the workload is to take."""
    return sum(phase.seconds for phase in record.phases) - _WARMUP_S - _MEASURE_S


def table(alone: Sequence[float], between: Sequence[float]) -> str:
    """For people, and for the journal."""
    ratio = median(between) / median(alone)
    rows = [("one machine", alone), ("two test hosts", between)]
    lines = [
        f"| {name} | {median(values):.2f} | {min(values):.2f} to {max(values):.2f} | {len(values)} |"
        for name, values in rows
    ]
    head = "| where | own time of a run, s | smallest to largest | runs |\n|---|---|---|---|\n"
    return head + "\n".join(lines) + f"\n\n{ratio:.2f} times that of one machine (goal: {GOAL:g})\n"


def _runs(place: Path, sites: Path | None) -> list[float]:
    study = place / "study.yaml"
    study.write_text(PAIR if sites is not None else PAIR.replace(", own_host: true", ""))
    store = Path(tempfile.mkdtemp(dir=place)) / "store"
    words = ["run", str(study), "--blocks", "1", "--store", str(store), "--quiet"]
    if sites is not None:
        words += ["--sites", str(sites)]
    argv = [sys.executable, "-m", "tare", *words]
    done = subprocess.run(argv, check=False, timeout=_RUN_S, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench.agent.own_time: {done.stderr.strip()}")
    return [own_time(record) for record in open_store(store).records() if record.outcome.ok]


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(words)
    alone: list[float] = []
    between: list[float] = []
    with tempfile.TemporaryDirectory(prefix="tare-bench-own-time-") as place, hosts.made(2) as pair:
        sites = pair[0].lab.sites
        _runs(Path(place), None)  # images are made and are on both hosts, data are loaded
        _runs(Path(place), sites)
        for _ in range(given.turns):
            alone += _runs(Path(place), None)
            between += _runs(Path(place), sites)
    shown = table(alone, between)
    show(shown, given.markdown)


if __name__ == "__main__":
    main()
