"""Predicted and measured, in lines and as a JSON tree."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tare.knowledge.advice_text import interval, percent
from tare.knowledge.predictions.measured import RateOutcome
from tare.knowledge.predictions.model_error import NINETY, ModelError
from tare.knowledge.predictions.past import Judged, score_of
from tare.knowledge.predictions.prediction_text import blocks_behind, named
from tare.one_line import plain
from tare.plural import counted


def past_lines(judged: Sequence[Judged], error: ModelError, rates: Sequence[RateOutcome] = ()) -> Iterator[str]:
    """A line per arm, then the score; within 80 columns where names are short."""
    if rates:
        yield from rate_lines(rates)
        yield ""
    score = score_of(judged)
    if score is None:
        yield "No arm was both predicted and measured in three blocks or more."
        return
    names = [
        f"{plain(each.outcome.study)} {named(plain(each.outcome.arm), each.outcome.metric)}" for each in judged
    ]
    width = max(map(len, names))
    yield f"{'study and arm':<{width}}  predicted (90 % interval)       measured"
    for name, each in zip(names, judged, strict=True):
        of = each.outcome
        ends = f"{percent(each.predicted)} {interval(each.predicted - each.half, each.predicted + each.half)}"
        outside = "" if each.within else "  outside"
        yield f"{name:<{width}}  {ends:<30}  {percent(of.measured)}{outside}{dropped(of.dropped)}"
    yield ""
    stores = counted(score.stores, "store")
    yield f"{score.within} of {counted(score.arms, 'arm')} of {stores} within the 90 % interval"
    yield f"{score.explained} of {score.arms} if the measurement's own error counts, too"
    half, off = f"{100 * score.half_points:.1f} points", f"{100 * score.error_points:.1f} points"
    yield f"median half-width {half}, mean absolute error {off} (of the overhead)"
    yield f"as log ratios: {100 * score.half:.1f} and {100 * score.error:.1f} %, and beside naive answers:"
    for pair, naive in (
        (score.beside_published, "the published figure"),
        (score.beside_mean, "the mean of all claims"),
    ):
        if pair is None:
            yield f"{naive}: there is none for these arms"
        else:
            yield f"{naive}: {100 * pair[1]:.1f} %, where the prediction has {100 * pair[0]:.1f}"
    if score.variance:
        shares = (f"{name} {100 * share:.0f} %" for name, share in score.variance.items())
        yield f"variance of the intervals: {', '.join(shares)}"
    if error.outcomes:
        own = f"{100 * error.base:.1f} % and {100 * error.share:.0f} % of the overhead"
        slope = f"{error.slope:.2f} ± {NINETY * error.slope_sd:.2f} of the sum of the unit costs"
        yield f"learned: measured overheads are {slope} (log ratios),"
        yield f"the model's own error is {own}"
    else:
        yield f"too few arms to learn the model's own error; {100 * error.base:.0f} % is assumed"


def rate_lines(rates: Sequence[RateOutcome]) -> Iterator[str]:
    """Return a line per arm on whether it keeps up with its rate, and the number of correct predictions."""
    names = [f"{plain(each.study)} {plain(each.arm)}" for each in rates]
    width = max(map(len, names))
    yield f"{'study and arm':<{width}}  {'predicted':<12}  measured"
    for name, each in zip(names, rates, strict=True):
        wrong = "" if each.right else "  wrong"
        yield f"{name:<{width}}  {FALLS_BEHIND[each.predicted]:<12}  {blocks_behind(each.kept)}{wrong}"
    yield f"{sum(each.right for each in rates)} of {counted(len(rates), 'arm')} at a fixed rate predicted correctly"


FALLS_BEHIND = {True: "falls behind", False: "keeps up"}


def dropped(blocks: int) -> str:
    """Say how many blocks a latency lacks; empty for none."""
    return f"  without {counted(blocks, 'block')} behind the rate" if blocks else ""


def past_tree(found: Sequence[Judged], error: ModelError, rates: Sequence[RateOutcome] = ()) -> dict[str, Any]:
    """Return a JSON tree with plain log ratios."""
    score = score_of(found)
    return {
        "arms": [
            {
                **dataclasses.asdict(each.outcome),
                "corrected": each.predicted,
                "half": each.half,
                "half_points": each.half_points,
                "sd_parts": dict(each.parts),
                "within": each.within,
                "explained": each.explained,
                "published": each.published,
                "mean_of_claims": each.mean,
                "overhead": math.expm1(each.outcome.measured),
            }
            for each in found
        ],
        "rates": [{**dataclasses.asdict(each), "right": each.right} for each in rates],
        "score": None if score is None else dataclasses.asdict(score),
        "error": error.model_dump(),
    }
