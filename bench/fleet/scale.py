"""What stores of many runs take: bytes, seconds and memory, as the number of runs grows tenfold and tenfold again.

    python -m bench.fleet.scale [--runs 1000,10000,100000] [--markdown FILE] [--json FILE]

A study of 100 arms in as many blocks as it takes, dealt to up to 200 sites; runs are made up, their records whole.
Beside a store in a directory there is one in PostgreSQL, where a server is installed.
Each command is a process of its own, as a user starts it, and has Python's bytecode, as an installed tare does:
PYTHONDONTWRITEBYTECODE is not passed on, and commands on a few runs before all else compile what is not yet.
How a figure grows is told by its exponent: 1 is in proportion to the runs, and what is above 1.1 grows faster.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from bench.fleet.made_up import made_up
from bench.fleet.place import variables
from bench.fleet.postgresql import programs, server, size_of, store_at
from bench.fleet.study import plan_of_sleeps
from tare.live.parts import NAMES
from tare.plan.model import Plan
from tare.record.run_record import Phase, PhaseTime, RunRecord
from tare.run.fleet.assignment import site_of_block
from tare.store import resume_store
from tare.store.files import attempt_name
from tare.store.rows import to_rows
from tare.store.write import insert_rows
from tare.store_place import Place, StorePlace, parse_store_url

ARMS, MOST_SITES, FEWEST_BLOCKS_A_SITE = 100, 200, 5
_BATCH = 2000
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
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
from dataclasses import replace
from tare.run.resume import remaining
from tare.store import open_store, resume_store
from tare.store.outlines import state_of
from tare.store_place import parse_store_url
place = parse_store_url(sys.argv[1])
plan = open_store(place).plan
began = time.perf_counter()
with resume_store(place, plan) as writer:
    done, last = state_of(writer), plan.runs[-1]
    assert not remaining(plan, done)
    assert remaining(plan, replace(done, good=done.good - {last.id})) == (last,)
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
    """So many runs in a kind of store, and what came out by the names of `GOALS` and in CPU seconds."""

    runs: int
    sites: int
    kind: str
    figures: Mapping[str, float]


def records_of(plan: Plan, sites: Sequence[str]) -> Iterator[RunRecord]:
    """Of every run of a plan, on the sites that a fleet would have made them on."""
    places: dict[int, str] = {}
    for run in plan.runs:
        if run.block not in places:
            places[run.block] = site_of_block(plan, sites, run.block)
        measured = PhaseTime(phase=Phase.MEASURE, began_at=_BEGAN_AT + 60.0 * run.index, seconds=60.0)
        yield made_up(plan, run, 1, places[run.block], measured)


def fill(store: Place, plan: Plan, sites: Sequence[str]) -> None:
    """A store with all runs made, as commits leave it."""
    with resume_store(store, plan) as writer:
        made = records_of(plan, sites)
        while batch := list(itertools.islice(made, _BATCH)):
            rows = [to_rows(record, record.phases[0].began_at) for record in batch]
            with writer.engine.begin() as connection:
                insert_rows(connection, rows, ())
            for record in batch:
                if writer.place.is_directory:
                    (writer.path / "raw" / attempt_name(record.run_id, record.attempt)).mkdir()


def environment() -> Mapping[str, str]:
    """Of the commands."""
    return {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}


def taken_by(argv: Sequence[str]) -> tuple[Took, str]:
    """A process from start to end, and what it printed; a failure is one of this benchmark too."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(argv, stdout=words, stdin=subprocess.DEVNULL, env=environment())
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
def served(store: StorePlace) -> Iterator[str]:
    """The address of a live page of the store."""
    argv = [sys.executable, "-m", "tare", "serve", str(store), "--port", "0"]
    unbuffered = {**environment(), "PYTHONUNBUFFERED": "1"}
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


def first_paint_s(address: str) -> Sequence[float]:
    """Seconds until the page has come, and until all that it shows first has, of a server that was just started."""
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    began = time.monotonic()
    with visitor.open(address, timeout=600) as answer:
        answer.read()
    painted_s = time.monotonic() - began
    with visitor.open(urllib.parse.urljoin(address, "/events"), timeout=600) as events:
        lacking = set(NAMES)
        while lacking:
            line = events.readline()
            if not line:
                sys.exit(f"bench.fleet.scale: the page ended without {', '.join(sorted(lacking))}")
            if line.startswith(b"data: {") and b'"name"' in line:
                lacking.discard(json.loads(line[6:])["name"])
    return painted_s, time.monotonic() - began


def compile_all(place: Path) -> None:
    """Have the bytecode of all that the commands import."""
    plan, store = plan_of_sleeps(2, 3), parse_store_url(place / "compiled")
    measured(store, plan, ["site-1", "site-2"], place / "compiled.html")
    shutil.rmtree(store.directory)


def measured(store: StorePlace, plan: Plan, sites: Sequence[str], page: Path) -> Scale:
    """A store of so many runs, made, measured and left."""
    began = time.monotonic()
    fill(store, plan, sites)
    filled_s = time.monotonic() - began
    size = sum(path.stat().st_size for path in store.directory.glob("store.sqlite*"))
    if not store.is_directory:
        size = size_of(store)
    tare = [sys.executable, "-m", "tare"]
    resumed, text = taken_by([sys.executable, "-c", _RESUME, str(store)])
    terminal, _ = taken_by([*tare, "report", str(store)])
    html, _ = taken_by([*tare, "report", str(store), "--format", "html", "--output", str(page)])
    with served(store) as address:
        paint_s, all_s = first_paint_s(address)
    return Scale(len(plan.runs), len(sites), "directory" if store.is_directory else "PostgreSQL", {
        "store, KB a run": size / len(plan.runs) / 1024,
        "terminal, s": terminal.wall_s, "terminal, CPU s": terminal.cpu_s, "terminal, GB": terminal.rss_gb,
        "HTML, s": html.wall_s, "HTML, CPU s": html.cpu_s, "HTML, GB": html.rss_gb,
        "HTML, MB": page.stat().st_size / 2**20,
        "live page, s": paint_s, "live page, all parts, s": all_s,
        "resume, s": float(text), "resume, CPU s": resumed.cpu_s, "resume, GB": resumed.rss_gb,
        "to make it up, s": filled_s,
    })  # fmt: skip


def of_size(place: Path, wanted: int, socket: Path | None) -> Iterator[Scale]:
    """So many runs in a directory, and in PostgreSQL where a server listens at `socket`."""
    plan = plan_of_sleeps(wanted // ARMS, ARMS - 1)  # and the baseline again
    sites = [f"site-{n:03d}" for n in range(1, 1 + min(MOST_SITES, max(2, wanted // ARMS // FEWEST_BLOCKS_A_SITE)))]
    page = place / "report.html"
    stores = [parse_store_url(place / f"store-{wanted}")]
    if socket is not None:
        stores.append(store_at(socket, f"runs-{wanted}", place / "raw"))
    for store in stores:
        yield measured(store, plan, sites, page)
        if store.is_directory:
            shutil.rmtree(store.directory)


def exponent(few: Scale, many: Scale, figure: str) -> float:
    """By which power of the number of runs a figure grew."""
    return math.log(many.figures[figure] / few.figures[figure]) / math.log(many.runs / few.runs)


def markdown(scales: Sequence[Scale], loads: Sequence[float]) -> str:
    """A table a kind of store: a row a figure: each number of runs, the exponent of the last step, and the goal."""
    lines = [f"Load {loads[0]:.1f} before and {loads[1]:.1f} after, on {os.cpu_count()} CPUs; {ARMS} arms.", ""]
    for kind in dict.fromkeys(each.kind for each in scales):
        lines += [*_table([each for each in scales if each.kind == kind]), ""]
    return "\n".join(lines)


def _table(scales: Sequence[Scale]) -> Iterator[str]:
    heads = [f"{each.runs:,} runs, {each.sites} sites" for each in scales]
    yield f"| {scales[0].kind} | {' | '.join(heads)} | exponent | goal |"
    yield f"|---|{'---|' * len(heads)}---|---|"
    for figure in scales[0].figures:
        cells = [f"{each.figures[figure]:.2f}" for each in scales]
        power = f"{exponent(scales[-2], scales[-1], figure):.2f}" if len(scales) > 1 else "\N{EM DASH}"
        goal = f"{GOALS[figure]:g}" if figure in GOALS else ""
        yield f"| {figure} | {' | '.join(cells)} | {power} | {goal} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="1000,10000,100000", help="how many, with commas, multiples of 100")
    parser.add_argument("--stores", default="directory,postgresql", help="kinds of stores (default: both)")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    before, scales = os.getloadavg()[0], list[Scale]()
    at = programs() if "postgresql" in given.stores else None
    if at is None and "postgresql" in given.stores:
        print("bench.fleet.scale: no PostgreSQL is installed; SQLite alone", file=sys.stderr)
    with (
        tempfile.TemporaryDirectory(prefix="tare-bench-scale-") as place,
        variables(TARE_HOME=f"{place}/home"),
        nullcontext(None) if at is None else server(at) as socket,
    ):
        compile_all(Path(place))
        for wanted in map(int, given.runs.split(",")):
            for scale in of_size(Path(place), wanted, socket):
                scales.append(scale)
                print(scale, file=sys.stderr, flush=True)
    text = markdown(scales, (before, os.getloadavg()[0]))
    sys.stdout.write(text)
    document = json.dumps([vars(each) for each in scales], default=dict)
    for path, content in ((given.markdown, text), (given.json, document)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


if __name__ == "__main__":
    main()
