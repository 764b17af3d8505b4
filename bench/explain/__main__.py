"""Known causes, and what sampling costs: whether `tare explain` puts the right cause first.

    python -m bench.explain --pairs 4 --cost-pairs 20 --markdown build/bench-explain.md

Each case of causes.yaml is run beside its baseline, interleaved, with tare-probe sampling stacks and counters, and
analysed as a study is. The load is redis-benchmark against a Redis in a network namespace of its own; copying up
is a program that rewrites files. Nothing outside of our own namespaces, control group and directory is touched.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bench.explain.cases import CASES, Case
from bench.explain.place import Place
from bench.explain.runs import Measured, measure
from bench.tables import show
from tare.analyze.explain.explanation import ArmExplanation, Pairing, explain_arm
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.report.explain.words import sentence

CAUSES = Path(__file__).with_name("causes.yaml")
_LONGER = 5
"""Length of runs that measure the cost of sampling, in those of the cases."""


@dataclass(frozen=True)
class Verdict:
    """What came out first, and whether it is what was expected."""

    case: str
    expected: str
    observed: str
    hit: bool
    explained: ArmExplanation


def judge(name: str, expected: Mapping[str, Any], explained: ArmExplanation) -> Verdict:
    """By the keys that causes.yaml gives: `key`, or any of `also_keys`."""
    first = explained.first
    keys = [expected["key"], *expected.get("also_keys", [])]
    title = "nothing shown" if first is None else first.title
    return Verdict(name, str(expected["first"]), title, first is not None and first.name in keys, explained)


def run_case(case: Case, place: Place, pairs: int) -> tuple[ArmExplanation, list[Measured]]:
    """Interleaved, the order within a pair alternating."""
    runs: dict[bool, list[Measured]] = {True: [], False: []}
    for pair in range(pairs):
        for is_arm in (False, True) if pair % 2 == 0 else (True, False):
            with case.setup(place, is_arm=is_arm) as load:
                runs[is_arm].append(measure(place, load))
    pairing = Pairing([run.times for run in runs[True]], [run.times for run in runs[False]])
    totals = [(mine.total_us, theirs.total_us) for mine, theirs in zip(pairing.arm, pairing.baseline, strict=True)]
    overhead = paired_log_ratio_t([mine / theirs for mine, theirs in totals if mine and theirs])
    return explain_arm(case.name, "without", pairing, overhead), runs[True] + runs[False]


def cost(place: Place, pairs: int) -> list[float]:
    """Throughput with stacks sampled over throughput without, pair by pair: an A/A but for the sampling.

    Runs are longer than those of the cases: their first second costs more, and a study spends it in its warm-up.
    """
    place = replace(place, operations=_LONGER * place.operations)
    ratios = []
    for pair in range(pairs):
        rates: dict[bool, float] = {}
        for sampling in (False, True) if pair % 2 == 0 else (True, False):
            with CASES["docker-proxy"].setup(place, is_arm=False) as load:
                rates[sampling] = measure(place, load, sampling=sampling).per_s
        ratios.append(rates[True] / rates[False])
    return ratios


def table(verdicts: Sequence[Verdict]) -> str:
    """Markdown: a line a case."""
    lines = ["| arm | expected first | came out first | hit | sentence |", "|---|---|---|---|---|"]
    lines += [
        f"| {each.case} | {each.expected} | {each.observed} | {_word(each)} | {sentence(each.explained)} |"
        for each in verdicts
    ]
    hits = sum(each.hit for each in verdicts)
    return "\n".join([*lines, "", f"Hit rate: {hits} of {len(verdicts)}."])


def _word(verdict: Verdict) -> str:
    return "yes" if verdict.hit else "no"


def told_cost(ratios: Sequence[float], measured: Sequence[Measured], unnamed: Sequence[float]) -> str:
    """Markdown: cost, share without a component, size."""
    estimate = paired_log_ratio_t(ratios)
    interval = "" if estimate.low is None else f" [{100 * estimate.low:+.1f}, {100 * (estimate.high or 0):+.1f}]"
    point = 100 * (estimate.point or 0)
    sizes = [run.profile_bytes / 1024 for run in measured if run.profile_bytes]
    seconds = statistics.median(run.seconds for run in measured)
    size = f"{statistics.median(sizes):.0f} KiB in the middle, {max(sizes):.0f} KiB at most"
    lines = (
        f"- Throughput with stacks sampled against without: {point:+.2f} %{interval}, {len(ratios)} pairs.",
        f"- Kernel time without a component: {100 * max(unnamed, default=0.0):.2f} % at most.",
        f"- Size of a profile: {size}, for runs of {seconds:.1f} s.",
    )
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cost-pairs", type=int, default=20)
    parser.add_argument("--operations", type=int, default=60_000, help="requests of a run")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="only this one; several")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench.explain: namespaces, control groups and sampling all CPUs take root")
    expected = YAML(typ="safe").load(CAUSES)["arms"]
    verdicts, measured = [], list[Measured]()
    with (
        tempfile.TemporaryDirectory(prefix="tare-explain-") as scratch,
        Place.made(Path(scratch), options.operations) as place,
    ):
        for name in options.case or CASES:
            if why := CASES[name].lacks():
                print(f"{name}: left out: {why}", file=sys.stderr)
                continue
            explained, runs = run_case(CASES[name], place, options.pairs)
            measured += runs
            verdicts.append(judge(name, expected[name], explained))
            print(f"{name}: {verdicts[-1].observed}; {sentence(explained)}", file=sys.stderr, flush=True)
        ratios = cost(place, options.cost_pairs)
    unnamed = [each.explained.unnamed for each in verdicts if each.explained.unnamed is not None]
    text = f"{table(verdicts)}\n\n{told_cost(ratios, measured, unnamed)}\n"
    show(text, options.markdown)
    if options.json:
        tree = {"cost_ratios": ratios, "hits": {each.case: each.hit for each in verdicts}}
        options.json.write_text(json.dumps(tree, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
