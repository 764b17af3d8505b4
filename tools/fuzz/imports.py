"""Files of others' runs: tables, reports of load generators, and logs of monitors beside them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

from tare.imports import collect, load_mapping
from tare.imports.guess import guess, survey
from tare.imports.monitors.beside import logs_below
from tare.imports.parsers.registry import PARSERS
from tools.fuzz import mutations
from tools.fuzz.documents import Accepted

DATA = Path(__file__).parents[2] / "tests" / "data"


_FILES = """\
format: 1
name: files
question: What?
files: "r-{setup}_{threads}_{run}.txt"
parser: {name: PARSER}
factors: {setup: {I: a, II: b}}
baseline: I
conditions: {threads: any}
repetition: run
"""


def runs(chance: Random, place: Path) -> object:
    """Others' runs: a table of them, or a tool's output each."""
    (place / "results").mkdir()
    if chance.random() < 0.5:
        rows = [f"{s},{t},{n},{1000 + 7 * n},{200 - n},0" for s in ("I", "II") for t in (2, 10) for n in (1, 2, 3)]
        table = "\n".join(["Setup,Threads,Run,ops,READ avg,failed", *rows, ""])
        text = (DATA / "imports" / "table.yaml").read_text()
        changed = mutations.text(table, chance)
        (place / "results" / "all.csv").write_text(changed, encoding="utf-8", errors="surrogatepass")
    else:
        parser = chance.choice(sorted(PARSERS))
        text = _FILES.replace("PARSER", parser)
        reports = sorted((DATA / "imports" / parser).glob("*")) or sorted((DATA / parser).glob("*.stdout"))
        source = chance.choice(reports).read_text(errors="replace")
        for setup in ("a", "b"):
            changed = mutations.text(source, chance)
            target = place / "results" / f"r-{setup}_2_1.txt"
            target.write_text(changed, encoding="utf-8", errors="surrogatepass")
    (place / "import.yaml").write_text(text)
    return collect(load_mapping(place / "import.yaml"), place / "results")


_TABLE = "platform,threads,run,req_per_sec,lat_mean_us\n" + "".join(
    f"{sut},{threads},{run},{900 + run},{1000.5 / threads}\n"
    for sut in ("metal", "docker")
    for threads in (1, 8)
    for run in (1, 2)
)


def unmapped(chance: Random, place: Path) -> object:
    """Others' runs without a mapping: names and reports that tare guesses one from."""
    words = ["bare", "docker", "vm", "1", "2", "16", "run1", "t4", "20240102", "a b", "é", "m3.large"]
    for _ in range(chance.randrange(1, 7)):
        parser = chance.choice(sorted(PARSERS)[:3] if chance.random() < 0.7 else sorted(PARSERS))
        reports = sorted((DATA / "imports" / parser).glob("*")) or sorted((DATA / parser).glob("*.stdout"))
        is_table = chance.random() < 0.3
        source = _TABLE if is_table else chance.choice(reports).read_text(errors="replace")
        name = chance.choice("_-/.").join(chance.choices(words, k=chance.randrange(1, 5)))
        target = place / "results" / f"{name}.{'csv' if is_table else 'log'}"
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            continue
        changed = mutations.text(source, chance) if chance.random() < 0.3 else source
        target.write_text(changed, encoding="utf-8", errors="surrogatepass")
    (place / "results").mkdir(exist_ok=True)
    (place / "import.yaml").write_text(guess(survey(place / "results")).text)
    return collect(load_mapping(place / "import.yaml"), place / "results")


_WATCHED = """\
format: 1
name: watched
question: What?
files: "{setup}-{run}.json"
parser: {name: benchbase}
factors: {setup: {I: bare, II: docker}}
baseline: I
repetition: run
monitors: {interval_s: 1}
"""
_LOGS_BEGIN_MS = 1_796_008_175_000
"""Just before most logs in tests/data/monitor-logs begin, in UTC."""


def watched(chance: Random, place: Path) -> object:
    """Logs of monitors beside the reports of two runs."""
    (place / "results").mkdir()
    report = json.loads((DATA / "imports" / "benchbase" / "tpcc.summary.json").read_text())
    report |= {"Start timestamp (milliseconds)": _LOGS_BEGIN_MS, "Elapsed Time (nanoseconds)": 2 * 10**9}
    for setup in ("bare", "docker"):
        (place / "results" / f"{setup}-1.json").write_text(json.dumps(report))
    for word in ("cpu", "disk"):  # words that do not tell runs apart
        log = chance.choice(sorted((DATA / "monitor-logs").glob("*.[cjt]*")))
        target = place / "results" / f"{chance.choice(('bare', 'docker'))}-1.{word}"
        target.write_text(mutations.text(log.read_text(), chance), encoding="utf-8", errors="surrogatepass")
    (place / "import.yaml").write_text(_WATCHED)
    made = collect(load_mapping(place / "import.yaml"), place / "results")
    for beside in logs_below(place / "results", []):
        for value in (value for sample in beside.log.samples for value in sample.values):
            if not math.isfinite(value.value):
                raise Accepted(f"{value.quantity} of {value.value} in {beside.name}")
    return made
