"""What stores of many runs take: bytes, seconds and memory, as the number of runs grows tenfold and tenfold again.

    python -m bench.fleet.scale [--runs 1000,10000,100000] [--markdown FILE] [--json FILE]

A study of 100 arms in as many blocks as it takes, dealt to up to 200 sites; runs are made up, their records whole.
Each command is a process of its own, as a user starts it. How a figure grows is told by its exponent: 1 is in
proportion to the runs, and what is above 1.1 grows faster than they do.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import insert
from sqlalchemy.dialects.sqlite import insert as upsert

from bench.fleet.made_up import made_up
from bench.fleet.study import plan_of_sleeps
from tare.plan.model import Plan
from tare.run.fleet.dealing import site_of_block
from tare.run.record import Phase, PhaseTime, RunRecord
from tare.store import resume_store
from tare.store.files import attempt_name
from tare.store.rows import to_rows
from tare.store.schema import facts, runs

ARMS, MOST_SITES, FEWEST_BLOCKS_A_SITE = 100, 200, 5
_BATCH = 2000
_LONGEST_S = 1800.0
_BEGAN_AT = 1_795_000_000.0
GOALS: Mapping[str, float] = {
    "store, KB a run": 2.0,
    "terminal, s": 20.0,
    "terminal, GB": 1.5,
    "HTML, s": 60.0,
    "HTML, MB": 5.0,
    "live page, s": 1.0,
    "resume, s": 2.0,
}
"""Of the largest store; what a figure should not exceed."""
_RESUME = """
import sys, time
from pathlib import Path
from tare.run.resume import StudyState, remaining
from tare.store import open_store, resume_store
plan = open_store(Path(sys.argv[1])).plan
began = time.perf_counter()
with resume_store(Path(sys.argv[1]), plan) as writer:
    remaining(plan, StudyState.from_records(writer.records()))
print(time.perf_counter() - began)
"""


@dataclass(frozen=True)
class Took:
    """A process. `rss_gb`: the most memory that it had."""

    wall_s: float
    cpu_s: float
    rss_gb: float


@dataclass(frozen=True)
class Scale:
    """So many runs, and what came out by the names of `GOALS` and in CPU seconds."""

    runs: int
    sites: int
    figures: Mapping[str, float]


def records_of(plan: Plan, sites: Sequence[str]) -> Iterator[RunRecord]:
    """Of every run of a plan, on the sites that a fleet would have made them on."""
    places: dict[int, str] = {}
    for run in plan.runs:
        if run.block not in places:
            places[run.block] = site_of_block(plan, sites, run.block)
        measured = PhaseTime(phase=Phase.MEASURE, began_at=_BEGAN_AT + 60.0 * run.index, seconds=60.0)
        yield made_up(plan, run, 1, places[run.block], measured)


def fill(store: Path, plan: Plan, sites: Sequence[str]) -> None:
    """A store with all runs made, as commits leave it."""
    with resume_store(store, plan) as writer:
        made = records_of(plan, sites)
        while batch := list(itertools.islice(made, _BATCH)):
            rows = [to_rows(record, record.phases[0].began_at) for record in batch]
            with writer.engine.begin() as connection:
                for digest, body in {digest: body for row in rows for digest, body in row.facts.items()}.items():
                    connection.execute(upsert(facts).values(digest=digest, body=body).on_conflict_do_nothing())
                connection.execute(insert(runs), [row.run for row in rows])
            for record in batch:
                (store / "raw" / attempt_name(record.run_id, record.attempt)).mkdir()


def taken_by(argv: Sequence[str]) -> tuple[Took, str]:
    """A process from start to end, and what it printed; a failure is one of this benchmark too."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(argv, stdout=words, stdin=subprocess.DEVNULL)
        timer = time.monotonic() + _LONGEST_S
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > timer:
                process.kill()
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        wall_s, used = time.monotonic() - began, ended[2]
        words.seek(0)
        text = words.read().decode()
    if process.returncode not in (0, 1):
        sys.exit(f"bench.fleet.scale: {' '.join(argv)} ended with {process.returncode}")
    return Took(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20), text


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of a live page of the store."""
    argv = [sys.executable, "-m", "tare", "serve", str(store), "--port", "0"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(argv, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env=unbuffered)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found.group().rstrip(".,")
                return
        sys.exit("bench.fleet.scale: tare serve told no address")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def first_paint_s(address: str) -> float:
    """Until the page and what it shows first have come, of a server that was just started."""
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    began = time.monotonic()
    with visitor.open(address, timeout=600) as answer:
        answer.read()
    return time.monotonic() - began


def measured(place: Path, wanted: int) -> Scale:
    """A store of so many runs, made, measured and left."""
    plan = plan_of_sleeps(wanted // ARMS, ARMS - 1)  # and the baseline again
    sites = [f"site-{n:03d}" for n in range(1, 1 + min(MOST_SITES, max(2, wanted // ARMS // FEWEST_BLOCKS_A_SITE)))]
    store, page = place / f"store-{wanted}", place / f"report-{wanted}.html"
    fill(store, plan, sites)
    size = sum(path.stat().st_size for path in store.glob("store.sqlite*"))
    tare = [sys.executable, "-m", "tare"]
    resumed, text = taken_by([sys.executable, "-c", _RESUME, str(store)])
    terminal, _ = taken_by([*tare, "report", str(store)])
    html, _ = taken_by([*tare, "report", str(store), "--format", "html", "--output", str(page)])
    with served(store) as address:
        paint_s = first_paint_s(address)
    return Scale(len(plan.runs), len(sites), {
        "store, KB a run": size / len(plan.runs) / 1024,
        "terminal, s": terminal.wall_s, "terminal, CPU s": terminal.cpu_s, "terminal, GB": terminal.rss_gb,
        "HTML, s": html.wall_s, "HTML, CPU s": html.cpu_s, "HTML, GB": html.rss_gb,
        "HTML, MB": page.stat().st_size / 2**20,
        "live page, s": paint_s,
        "resume, s": float(text), "resume, GB": resumed.rss_gb,
    })  # fmt: skip


def exponent(few: Scale, many: Scale, figure: str) -> float:
    """By which power of the number of runs a figure grew."""
    return math.log(many.figures[figure] / few.figures[figure]) / math.log(many.runs / few.runs)


def markdown(scales: Sequence[Scale], loads: Sequence[float]) -> str:
    """A row a figure: each number of runs, the exponent of the last step, and the goal."""
    heads = [f"{each.runs:,} runs, {each.sites} sites" for each in scales]
    lines = [
        f"Load {loads[0]:.1f} before and {loads[1]:.1f} after, on {os.cpu_count()} CPUs; {ARMS} arms.",
        "",
        f"| | {' | '.join(heads)} | exponent | goal |",
        f"|---|{'---|' * len(heads)}---|---|",
    ]
    for figure in scales[0].figures:
        cells = [f"{each.figures[figure]:.2f}" for each in scales]
        power = f"{exponent(scales[-2], scales[-1], figure):.2f}" if len(scales) > 1 else "\N{EM DASH}"
        goal = f"{GOALS[figure]:g}" if figure in GOALS else ""
        lines.append(f"| {figure} | {' | '.join(cells)} | {power} | {goal} |")
    return "\n".join((*lines, ""))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="1000,10000,100000", help="how many, with commas, multiples of 100")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    before, scales = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory(prefix="tare-bench-scale-") as place:
        for wanted in map(int, given.runs.split(",")):
            scales.append(measured(Path(place), wanted))
            print(scales[-1], file=sys.stderr, flush=True)
    text = markdown(scales, (before, os.getloadavg()[0]))
    sys.stdout.write(text)
    told = json.dumps([vars(each) for each in scales], default=dict)
    for path, content in ((given.markdown, text), (given.json, told)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


if __name__ == "__main__":
    main()
