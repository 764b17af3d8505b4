"""What handing out blocks costs: fake sites that sleep, under tare's coordinator and under what else runs tasks.

    python -m bench.fleet [--sites 1,4,16,64] [--blocks 4] [--sleep 10] [--markdown FILE] [--json FILE]

Two questions, for each number of sites, with real records into a real store:

- overhead: blocks that sleep not at all. Seconds a block, from the first one given out to the last one committed.
  With one site it is what a site waits between two blocks.
- speed-up: blocks that sleep, in as many runs as there are arms. Sleeping seconds a second, beside `make -j`, GNU
  parallel and plain Dask (a process a site) for as many sleeps of the same length.

The processes of sites are started and connected before the clock starts: a study starts them once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.fleet.made_up import SECONDS
from bench.fleet.place import scratch, variables
from bench.fleet.study import plan_of_sleeps
from tare.run.execute import Destination
from tare.run.fleet.coordinator import execute_on
from tare.run.fleet.dispatcher import Fleet
from tare.run.fleet.workers import OwnWorkers
from tare.run.resume import StudyState
from tare.sites.file import SiteSpec
from tare.store import resume_store

ROOT = Path(__file__).parents[2]
MADE_UP = (sys.executable, "-m", "bench.fleet.made_up")
ARMS = 2
"""Beside the baseline again."""
GOAL_MS, GOAL_SPEED_UP = 20.0, 0.97
_START_S = 600.0
_LONGEST_S = 1800.0


@dataclass(frozen=True)
class Took:
    """Of so many blocks on so many sites. `cpu_s`: of this process and those that it started, while they were made.

    `start_s`: until the processes of all sites were there. `rss_mb`: the most that this process had.
    """

    how: str
    sites: int
    blocks: int
    block_s: float
    wall_s: float
    cpu_s: float | None = None
    start_s: float | None = None
    rss_mb: float | None = None

    @property
    def overhead_ms(self) -> float:
        """What a block costs beside its sleep: what a site slept is taken off."""
        return 1000 * (self.wall_s - self.block_s * self.blocks / self.sites) / self.blocks

    @property
    def speed_up(self) -> float:
        """Sleeping seconds a second, over the number of sites: 1 is as fast as can be."""
        return self.block_s * self.blocks / self.wall_s / self.sites


def by_tare(sites: int, blocks: int, block_s: float) -> Took:
    """Tare's coordinator, its Dask cluster and its store."""
    plan = plan_of_sleeps(blocks, ARMS)
    names = [f"site-{n:03d}" for n in range(1, sites + 1)]
    runs_s = str(block_s * blocks / len(plan.runs))
    with (
        scratch() as place,
        variables(TARE_HOME=str(place / "home"), PYTHONPATH=str(ROOT), **{SECONDS: runs_s}),
        resume_store(place / "store", plan) as writer,
    ):
        began = time.monotonic()
        workers = OwnWorkers([SiteSpec(name=name, sut="local", client="local") for name in names], MADE_UP)
        try:
            workers.client.wait_for_workers(sites, timeout=_START_S)
            start_s = time.monotonic() - began
            destination = Destination(writer.id, StudyState(), writer.staging)
            pids, made = list(workers.pids.values()), 0
            cpu, began = cpu_of(pids), time.monotonic()
            for kept in execute_on(Fleet(names, workers, place / "store"), plan, destination, (), lambda _: None):
                writer.commit_all(kept)
                made += len(kept)
                if made == len(plan.runs):
                    wall_s, cpu_s = time.monotonic() - began, cpu_of(pids) - cpu
        finally:
            workers.close()
    if made != len(plan.runs):
        sys.exit(f"bench.fleet: {made} of {len(plan.runs)} runs were made")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Took("tare", sites, blocks, block_s, wall_s, cpu_s, start_s, most)


def by_dask(sites: int, blocks: int, block_s: float) -> Took:
    """Plain Dask: a worker process a site, with one thread."""
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(n_workers=sites, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(sites, timeout=_START_S)
        began = time.monotonic()
        wait(client.map(time.sleep, [block_s] * blocks, pure=False), timeout=_LONGEST_S)
        return Took("Dask alone", sites, blocks, block_s, time.monotonic() - began)


def by_make(sites: int, blocks: int, block_s: float) -> Took:
    """`make -j`, a target a block."""
    with scratch() as place:
        names = " ".join(f"block-{n}" for n in range(blocks))
        (place / "Makefile").write_text(f".PHONY: {names}\nall: {names}\n{names}:\n\t@sleep {block_s}\n")
        return timed("make -j", sites, blocks, block_s, ["make", "--silent", f"-j{sites}", "-C", str(place)])


def by_parallel(sites: int, blocks: int, block_s: float) -> Took:
    """GNU parallel, a job a block."""
    argv = ["parallel", "--will-cite", f"-j{sites}", "sleep", *(":::", *[str(block_s)] * blocks)]
    return timed("GNU parallel", sites, blocks, block_s, argv)


def timed(how: str, sites: int, blocks: int, block_s: float, argv: Sequence[str]) -> Took:
    """A program that does it all."""
    began = time.monotonic()
    subprocess.run(argv, check=True, timeout=_LONGEST_S, stdin=subprocess.DEVNULL)
    return Took(how, sites, blocks, block_s, time.monotonic() - began)


def others() -> Mapping[str, Callable[[int, int, float], Took]]:
    """What else runs tasks, as far as it is installed."""
    found: dict[str, Callable[[int, int, float], Took]] = {"Dask alone": by_dask}
    if shutil.which("make"):
        found["make -j"] = by_make
    if shutil.which("parallel"):
        found["GNU parallel"] = by_parallel
    return found


def cpu_of(pids: Iterable[int]) -> float:
    """CPU seconds of this process and of these."""
    ticks = os.sysconf("SC_CLK_TCK")
    own = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own += (int(fields[11]) + int(fields[12])) / ticks
    return own


def measure(sites: Sequence[int], blocks: int, sleep_s: float, *, beside: bool) -> list[Took]:
    """All of it, the fewest sites first. `blocks`: a site."""
    taken: list[Took] = []
    for n in sites:
        taken.append(by_tare(n, max(64, 4 * n), 0.0))
        say(taken[-1])
    for n in sites:
        taken.append(by_tare(n, blocks * n, sleep_s))
        say(taken[-1])
        for way in others().values() if beside else ():
            taken.append(way(n, blocks * n, sleep_s))
            say(taken[-1])
    return taken


def say(took: Took) -> None:
    """What came out, at once."""
    print(
        f"{took.how}, {took.sites} sites, {took.blocks} blocks of {took.block_s:g} s: {took.wall_s:.2f} s, "
        f"overhead {took.overhead_ms:.1f} ms a block, speed-up {took.speed_up:.3f}", file=sys.stderr, flush=True,
    )  # fmt: skip


def markdown(taken: Sequence[Took], loads: Sequence[float]) -> str:
    """Two tables: overhead of blocks without any sleep, and speed-up of sleeping ones."""
    load = (
        f"Load {loads[0]:.1f} before and {loads[1]:.1f} after, on {os.cpu_count()} CPUs; {ARMS + 1} runs a block."
    )
    empty = [each for each in taken if not each.block_s]
    rows = [
        f"| {each.sites} | {each.blocks} | {each.blocks / each.wall_s:.1f} | {each.overhead_ms:.1f} "
        f"| {_or_none(each.cpu_s and 1000 * each.cpu_s / each.blocks)} | {_or_none(each.start_s)} "
        f"| {_or_none(each.rss_mb)} |"
        for each in empty
    ]
    columns = (
        "sites", "blocks", "blocks a second", "ms a block", "CPU ms a block, all processes",
        "start of all sites, s", "most memory of tare, MB",
    )  # fmt: skip
    head = f"Blocks that do nothing (goal: {GOAL_MS:g} ms a block).\n\n{_header(columns)}"
    asleep = [each for each in taken if each.block_s]
    ways = list(dict.fromkeys(each.how for each in asleep))
    lines = []
    for n in sorted({each.sites for each in asleep}):
        of = {each.how: each for each in asleep if each.sites == n}
        some = next(iter(of.values()))
        cells = [f"{of[way].speed_up:.3f}" if way in of else "\N{EM DASH}" for way in ways]
        lines.append(f"| {n} | {some.blocks} of {some.block_s:g} s | {' | '.join(cells)} |")
    goal = f"(goal: {GOAL_SPEED_UP:g} up to 64 sites)"
    second = (
        f"Blocks that sleep: sleeping seconds a second, over the number of sites {goal}.\n\n"
        f"{_header(('sites', 'blocks', *ways))}"
    )
    return "\n".join((load, "", head, *rows, "", *((second, *lines, "") if asleep else ())))


def _header(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def _or_none(value: float | None) -> str:
    return "\N{EM DASH}" if value is None else f"{value:.1f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", default="1,4,16,64", help="how many, with commas (default 1,4,16,64)")
    parser.add_argument("--blocks", type=int, default=4, help="sleeping blocks a site (default 4)")
    parser.add_argument("--sleep", type=float, default=10.0, help="seconds that a block sleeps (default 10)")
    parser.add_argument("--alone", action="store_true", help="without make, GNU parallel and plain Dask")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    before = os.getloadavg()[0]
    sites = [int(each) for each in given.sites.split(",")]
    taken = measure(sites, given.blocks, given.sleep, beside=not given.alone)
    text = markdown(taken, (before, os.getloadavg()[0]))
    sys.stdout.write(text)
    for path, content in ((given.markdown, text), (given.json, json.dumps([asdict(each) for each in taken]))):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


if __name__ == "__main__":
    main()
