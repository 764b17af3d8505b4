"""Predicted and measured, a table a metric: stores of the studies beside this file.

    python -m bench.predictions STORE… --markdown build/bench-predictions.md --json build/bench-predictions.json

Each store is predicted from its bare runs, with slope and model error as the other stores teach them. A store of a
machine that was never weighed, or without a good run, is left out aloud.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.tables import show
from tare.errors import TareError
from tare.knowledge.advice_text import interval, percent
from tare.knowledge.claim import load_claims
from tare.knowledge.predictions.measured import MOST_BEHIND, Kept, RateOutcome
from tare.knowledge.predictions.model_error import CPU, LATENCY, THROUGHPUT
from tare.knowledge.predictions.past import Judged, Past, error_of, judged, past_of, score_of
from tare.knowledge.predictions.past_text import FALLS_BEHIND, dropped, past_tree
from tare.knowledge.predictions.prediction_text import blocks_behind
from tare.plural import counted
from tare.sites.layout import default_layout
from tare.store_place import parse_store_url

TITLES = {
    THROUGHPUT: "Throughput, closed loop",
    CPU: "CPU an operation, at a rate",
    LATENCY: "Mean latency, at a rate",
}


_TOO_FEW = "fewer than three blocks were measured or kept up with the rate"


def table(found: Sequence[Judged], metric: str) -> Iterator[str]:
    """Markdown: a line an arm, then the score; nothing of a metric without arms."""
    of = [each for each in found if each.outcome.metric == metric]
    score = score_of(of)
    if score is None:
        return
    yield from ("", f"## {TITLES[metric]}", "", "| study, arm | predicted, 90 % interval | measured | within |")
    yield "|---|---|---|---|"
    for each in of:
        ends = f"{percent(each.predicted)} {interval(each.predicted - each.half, each.predicted + each.half)}"
        measured = percent(each.outcome.measured) + dropped(each.outcome.dropped)
        within = "yes" if each.within else "no"
        yield f"| {each.outcome.study}, {each.outcome.arm} | {ends} | {measured} | {within} |"
    yield ""
    of_what = f"{counted(score.arms, 'arm')} of {counted(score.stores, 'store')}"
    yield f"- {score.within} of {of_what} within the interval."
    yield f"- {score.explained} if the measurement's own error counts, too."
    half, off = 100 * score.half_points, 100 * score.error_points
    yield f"- Median half-width {half:.1f} points, mean absolute error {off:.1f} points (of the overhead)."
    for pair, naive in ((score.beside_published, "published figure"), (score.beside_mean, "mean of all claims")):
        if pair is not None:
            ratio = pair[0] / pair[1] if pair[1] else float("inf")
            errors = f"{pair[0]:.3f} and {pair[1]:.3f}: {ratio:.2f}"
            yield f"- Mean absolute error beside the {naive}'s, log ratios: {errors}."
    shares = ", ".join(f"{name} {share:.0%}" for name, share in score.variance.items())
    yield f"- Variance of the intervals: {shares}."


def rate_table(rates: Sequence[RateOutcome]) -> Iterator[str]:
    """Markdown: whether each arm falls behind its rate; nothing of none."""
    if not rates:
        return
    yield from ("", "## Arms that fall behind their rate", "", "| study, arm | predicted | measured | right |")
    yield "|---|---|---|---|"
    for each in rates:
        right = "yes" if each.right else "no"
        behind = FALLS_BEHIND[each.predicted]
        yield f"| {each.study}, {each.arm} | {behind} | {blocks_behind(each.kept)} | {right} |"
    yield from ("", f"- {sum(each.right for each in rates)} of {counted(len(rates), 'arm')} predicted rightly.")


def _too_little(kept: Kept | None) -> str:
    """Why an arm has no measurement to compare with."""
    if kept is None or kept.dropped <= MOST_BEHIND:
        return _TOO_FEW
    if kept.behind > MOST_BEHIND:
        return blocks_behind(kept)
    return f"it or its baseline fell behind in {kept.dropped} blocks"


def unpredicted(pasts: Sequence[Past]) -> Iterator[str]:
    """Arms without a prediction or without three blocks to compare with, and why."""
    for past in pasts:
        for each in past.predictions:
            why = each.why_none or (_too_little(each.kept) if each.measured_se is None else None)
            if why is not None:
                yield f"- {past.study.name}, {each.arm}, {each.metric}: {why}."


def main() -> int:
    """The command."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("stores", nargs="+", type=Path)
    options.add_argument("--markdown", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    pasts = []
    for path in chosen.stores:
        try:
            pasts.append(past_of(parse_store_url(str(path)), default_layout()))
        except TareError as error:
            print(f"{path} is left out: {error}", file=sys.stderr)
    found = judged(pasts, load_claims())
    lines = [line for metric in TITLES for line in table(found, metric)]
    rates = [each for past in pasts for each in past.rates]
    lines += rate_table(rates)
    without = list(unpredicted(pasts))
    rest = ["", "## Not predicted, or not measured", "", *without] if without else []
    show("\n".join(["# Predicted and measured", *lines, *rest]) + "\n", chosen.markdown)
    if chosen.json is not None:
        tree = past_tree(found, error_of(pasts), rates)
        chosen.json.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if found or rates else 1


if __name__ == "__main__":
    sys.exit(main())
