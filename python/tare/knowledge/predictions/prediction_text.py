"""Predictions in lines, and as JSON trees."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from tare.analyze.metrics import METRICS
from tare.knowledge.advice_text import interval, percent
from tare.knowledge.predictions.measured import Kept
from tare.knowledge.predictions.model_error import ASSUMED, THROUGHPUT, ModelError
from tare.knowledge.predictions.prediction import Prediction
from tare.knowledge.prior import Prior
from tare.plural import counted

_BOUNDS: Mapping[str, str] = {
    "machine": "CPU of the machine",
    "sut": "CPU of the SUT",
    "client": "CPU of the client",
    "time": "time of each operation",
    "disk": "the disk",
}


def prediction_lines(
    predictions: Sequence[Prediction],
    width: int,
    error: ModelError = ASSUMED,
    priors: Mapping[str, Prior] | None = None,
) -> Iterator[str]:
    """Return a table of throughput against the baseline, at most `width` characters wide; empty without arms.

    `priors`: arm → what claims say about its throughput, shown beside the prediction.
    """
    if not predictions:
        return
    yield ""
    what = "" if any(each.metric != THROUGHPUT for each in predictions) else " throughput"
    yield f"Predicted{what} against bare (90 % interval), from this machine's unit costs:"
    name = max(len(named(each.arm, each.metric)) for each in predictions)
    for each in predictions:
        arm = named(each.arm, each.metric)
        if each.log_ratio is None or each.low is None or each.high is None:
            yield from _row(arm, name, f"no prediction: {each.why_none}{_behind(each)}", width)
        else:
            beside = "" if each.measured is None else f"; measured {percent(each.measured)}"
            figures = f"{percent(each.log_ratio)} {interval(each.low, each.high)}"
            bound = "" if each.bound is None else f", limited by {_BOUNDS[each.bound]}"
            yield from _row(arm, name, f"{figures}{bound}{beside}{_behind(each)}", width)
        if each.metric == THROUGHPUT and (prior := (priors or {}).get(each.arm)):
            yield f"  {'':<{name}}  {_beside(each, prior)}"
    yield from _sources(predictions, error, width)


def _row(arm: str, name: int, words: str, width: int) -> Iterator[str]:
    """Return a row of the table; long text continues in its own column, or below a long name."""
    if name + 4 + len(words) <= width:
        yield f"  {arm:<{name}}  {words}"
    elif name + 4 <= width // 2:
        first, *rest = textwrap.wrap(words, width - name - 4, break_on_hyphens=False)
        yield f"  {arm:<{name}}  {first}"
        yield from (f"{'':<{name + 4}}{line}" for line in rest)
    else:
        yield f"  {arm}"
        yield from textwrap.wrap(words, max(width, 40), initial_indent=" " * 6, subsequent_indent=" " * 6)


def named(arm: str, metric: str) -> str:
    """Name an arm, with the metric if it is not throughput."""
    return arm if metric == THROUGHPUT else f"{arm}, {METRICS[metric].short}"


def _behind(prediction: Prediction) -> str:
    """Say in how many blocks an arm fell behind its rate, if it did."""
    kept = prediction.kept
    return "" if kept is None or not kept.behind else f"; {blocks_behind(kept)}"


def blocks_behind(kept: Kept) -> str:
    """Say in how many blocks an arm fell behind its rate."""
    return f"fell behind in {kept.behind} of {counted(kept.blocks, 'block')}"


def _beside(prediction: Prediction, prior: Prior) -> str:
    """What claims say, and whether that agrees: whether the two 90 % intervals overlap."""
    claims = f"claims: {percent(prior.point)} {interval(prior.low, prior.high)}"
    if prediction.low is None or prediction.high is None:
        return claims
    apart = prediction.low > prior.high or prior.low > prediction.high
    return f"{claims}, {'which disagree' if apart else 'which agree'}"


def _sources(predictions: Sequence[Prediction], error: ModelError, width: int) -> Iterator[str]:
    """Say what the intervals contain, and what they ignore."""
    if not any(each.log_ratio is not None for each in predictions):
        return
    metrics = dict.fromkeys(each.metric for each in predictions if each.log_ratio is not None)
    words = " ".join(_of_error(error.of(metric), metric) for metric in metrics)
    if all(each.kib is None for each in predictions):
        words += " Bytes of requests and replies are left out: no trace, or no unit cost of a KiB, states them."
    yield from textwrap.wrap(words, width, initial_indent="  ", subsequent_indent="  ")


def _of_error(error: ModelError, metric: str) -> str:
    """Say how large the model's own error is for a metric, and from what that is known."""
    base = f"{100 * error.base:.1f} % and {100 * error.share:.0f} % of the overhead"
    learned = f"learned from {counted(error.outcomes, 'arm')} of {counted(error.stores, 'store')}"
    of = "" if metric == THROUGHPUT else f" for {METRICS[metric].short}"
    words = f"The model's own error{of}: {base}, {learned if error.outcomes else 'assumed'}."
    if not error.outcomes:
        return words
    return f"{words} Of the sum of the unit costs, {100 * error.slope:.0f} % is predicted, as in those stores."


def prediction_trees(found: Sequence[Prediction]) -> list[dict[str, object]]:
    """For JSON: log ratios as relative changes, fractions."""
    return [
        {
            "arm": each.arm,
            "metric": each.metric,
            each.metric: _relative(each.log_ratio),
            "low": _relative(each.low),
            "high": _relative(each.high),
            "bound": each.bound,
            "why_none": each.why_none,
            "measured": _relative(each.measured),
            "kib_per_operation": each.kib,
            "falls_behind": each.falls_behind,
            "blocks_behind": None if each.kept is None else each.kept.behind,
            "blocks_dropped": None if each.kept is None else each.kept.dropped,
        }
        for each in found
    ]


def _relative(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)
