"""How long it takes to import and analyse 720 runs: whole processes, as a user starts them.

    python -m bench.import_runs DIR [--turns 5] [--markdown FILE]

DIR holds the 360 published files of grambow-2018 (m3.medium). No more are published, so each is used twice, under
the machine's own name and under another one: 720 files to read, and results without a meaning.

As for a user, Python keeps the bytecode of modules (PYTHONDONTWRITEBYTECODE is not passed on), and the first turn,
which compiles it, does not count. Stores are removed at the end: right after a removal, ext4 takes longer to write
a new store, because it skips recently freed inodes one by one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.tables import show

ROOT = Path(__file__).parents[1]
MAPPING = ROOT / "studies" / "grambow-2018" / "import.yaml"
RUNS = 720
GOAL_S = 5.0
_TIMEOUT_S = 600.0
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_MACHINE = "_m3.medium_m3.medium_"
_AGAIN = "_m3.medium-again_m3.medium-again_"


@dataclass(frozen=True)
class Took:
    """Seconds of a process by the wall clock and of all its CPUs."""

    wall_s: float
    cpu_s: float


def doubled(source: Path, target: Path) -> int:
    """The published files, each under two machines' names; how many there are then."""
    for path in sorted(source.rglob("results-*.txt")):
        for name in (path.name, path.name.replace(_MACHINE, _AGAIN)):
            (target / name).write_bytes(path.read_bytes())
    return len(list(target.iterdir()))


def timed(*words: str) -> Took:
    """`tare` from its start to its end; a failure is one of this benchmark too."""
    environment = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    argv = [sys.executable, "-m", "tare", *words]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(argv, check=True, timeout=_TIMEOUT_S, stdout=subprocess.DEVNULL, env=environment)
    wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(files: Path, turns: int) -> dict[str, list[Took]]:
    """Each command once a turn, the import into a store of its own; the first turn is left out."""
    times: dict[str, list[Took]] = {"tare import": [], "tare report": []}
    with tempfile.TemporaryDirectory(prefix="tare-bench-import-") as scratch:
        for turn in range(turns + 1):
            store = f"{scratch}/store-{turn}"
            times["tare import"].append(timed("import", str(MAPPING), str(files), "--store", store))
            times["tare report"].append(timed("report", store))
    return {name: every[1:] for name, every in times.items()}


def markdown(times: dict[str, list[Took]], loads: Sequence[float]) -> str:
    """Medians over the turns, with the least and the most of the wall clock."""
    both = [
        Took(sum(each.wall_s for each in turn), sum(each.cpu_s for each in turn))
        for turn in zip(*times.values(), strict=True)
    ]
    rows = []
    for name, every in {**times, "both": both}.items():
        walls = [each.wall_s for each in every]
        cpu = median(each.cpu_s for each in every)
        rows.append(f"| {name} | {median(walls):.1f} | {min(walls):.1f} to {max(walls):.1f} | {cpu:.1f} |")
    summary = (
        f"{RUNS} runs, {len(both)} turns; load {loads[0]:.1f} before and {loads[1]:.1f} after, "
        f"on {os.cpu_count()} CPUs. Goal: {GOAL_S:g} s for both."
    )
    head = "| command | wall s, median | least to most | CPU s, median |\n|---|---|---|---|"
    return "\n".join((summary, "", head, *rows, ""))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tare-bench-import-") as scratch:
        files = doubled(asked.directory, Path(scratch))
        if files != RUNS:
            sys.exit(
                f"bench.import_runs: {asked.directory} gives {files} files, not {RUNS}: is it all of the data?"
            )
        before = os.getloadavg()[0]
        text = markdown(measure(Path(scratch), asked.turns), (before, os.getloadavg()[0]))
    show(text, asked.markdown)


if __name__ == "__main__":
    main()
