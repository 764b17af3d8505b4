"""All studies of a calibration together: false positives, coverage, bias, and the smallest detectable effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from scipy.special import betaincinv, stdtrit

from tare.calibrate.outcome import ContrastResult
from tare.protocols.stopping import MIN_BLOCKS_FOR_INTERVAL
from tare.study.protocol_spec import InterleaveSpec
from tare.study.values import Strict

CONFIDENCE = 0.95
FEWEST_TRUTHS = 2
"""Other studies that must know an injection's truth before a study is judged by it: one alone has no spread."""
MINUTES = (1, 10, 60)
RUNS_A_BLOCK = 3
"""Runs in a block of the smallest study: the baseline, its second instance, and one arm."""


class Share(Strict):
    """`count` of `of`, with the exact interval of Clopper and Pearson; only the counts if `of` is 0."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


class Mean(Strict):
    """A mean over studies with its t interval; no interval for fewer than three."""

    n: int
    point: float | None
    low: float | None
    high: float | None


class Injected(Strict):
    """Results of an injection, as fractions of the baseline's throughput.

    `injection`: its title. `truth`: from the reading, over all studies. `estimate`: mean of the studies' points.
    `bias`: estimate minus truth, by study. `covered`: intervals that contained the truth.
    """

    injection: str
    truth: Mean
    estimate: Mean
    bias: Mean
    covered: Share


class Smallest(Strict):
    """The smallest overhead detectable within `minutes`; `None` if there is no interval so soon."""

    minutes: float
    blocks: int
    overhead: float | None


def share(count: int, of: int) -> Share:
    """Clopper and Pearson, "The use of confidence or fiducial limits …", Biometrika 26 (1934), at 95 %."""
    if of == 0:
        return Share(count=count, of=of, share=None, low=None, high=None)
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return Share(count=count, of=of, share=count / of, low=low, high=high)


def false_positives(seen: Sequence[ContrastResult]) -> Share:
    """Count the A/A contrasts that a report would have called a difference."""
    same = [each for each in seen if each.injection is None]
    return share(sum(each.excludes_zero for each in same), len(same))


def injected(seen: Sequence[ContrastResult], injection: str) -> Injected:
    """Summarise the studies of one injection."""
    own = [each for each in seen if each.injection == injection]
    known = [(each, each.truth) for each in own if each.truth is not None]
    judged = [verdict for n in range(len(known)) if (verdict := _covers(n, known)) is not None]
    return Injected(
        injection=injection,
        truth=_relative(mean([truth for _, truth in known])),
        estimate=_relative(mean([each.point for each in own])),
        bias=mean([math.expm1(each.point) - math.expm1(truth) for each, truth in known]),
        covered=share(sum(judged), len(judged)),
    )


def _covers(n: int, known: Sequence[tuple[ContrastResult, float]]) -> bool | None:
    """Whether study n's interval contains the truth, as the *other* studies know it.

    A study's own truth shares its noise (for a saturated server, throughput and CPU time per transaction are the
    same figure), so any interval would cover it. The others' mean has an error of its own, by which the interval is
    widened: half' = √(half² + (t(m - 1, 0.975) · s / √m)²), with m other studies of standard deviation s.
    """
    own = known[n][0]
    others = [truth for index, (_, truth) in enumerate(known) if index != n]
    if len(others) < FEWEST_TRUTHS:
        return None
    error = float(stdtrit(len(others) - 1, 0.5 + CONFIDENCE / 2)) * stdev(others) / math.sqrt(len(others))
    truth, middle = fmean(others), (own.low + own.high) / 2
    return abs(truth - middle) <= math.hypot((own.high - own.low) / 2, error)


def mean(values: Sequence[float]) -> Mean:
    """Student's t interval of a mean, at 95 %."""
    n = len(values)
    if n == 0:
        return Mean(n=0, point=None, low=None, high=None)
    middle = fmean(values)
    if n < MIN_BLOCKS_FOR_INTERVAL:
        return Mean(n=n, point=middle, low=None, high=None)
    reach = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * stdev(values) / math.sqrt(n)
    return Mean(n=n, point=middle, low=middle - reach, high=middle + reach)


def _relative(logs: Mean) -> Mean:
    """Convert log ratios to fractions: -0.105 → -0.1."""
    ends = {key: None if value is None else math.expm1(value) for key, value in _ends(logs).items()}
    return logs.model_copy(update=ends)


def _ends(of: Mean) -> Mapping[str, float | None]:
    return {"point": of.point, "low": of.low, "high": of.high}


def block_spread(seen: Sequence[ContrastResult]) -> float | None:
    """Standard deviation of the log ratio between blocks, for two instances of the same arm on a saturated server.

    Pooled over studies: √(Σ (n_i - 1) s_i² / Σ (n_i - 1)).
    """
    same = [each for each in seen if each.injection is None and each.usual]
    freedom = sum(each.n - 1 for each in same)
    return math.sqrt(sum((each.n - 1) * each.spread**2 for each in same) / freedom) if freedom else None


def run_seconds(seen: Sequence[ContrastResult]) -> float | None:
    """Mean machine time of a run over studies of the usual kinds, in seconds."""
    times = {(each.kind, each.study): each.run_s for each in seen if each.usual}
    return fmean(times.values()) if times else None


def smallest(spread: float, block_s: float, minutes: float) -> Smallest:
    """Return the smallest loss of throughput that an interval is expected to separate from zero after `minutes`.

    With n = ⌊60 · minutes / block_s⌋ blocks, d = t(n - 1, 1 - a/2) · s / √n is half the interval of the mean log
    ratio, with s the spread between blocks and a the protocol's own alpha (0.035, which pays for its looks). A loss
    of 1 - exp(-d) puts the interval's end at zero, so half of all studies detect it.
    """
    n = int(60 * minutes // block_s)
    if n < MIN_BLOCKS_FOR_INTERVAL:
        return Smallest(minutes=minutes, blocks=n, overhead=None)
    alpha = InterleaveSpec().alpha
    half = float(stdtrit(n - 1, 1 - alpha / 2)) * spread / math.sqrt(n)
    return Smallest(minutes=minutes, blocks=n, overhead=-math.expm1(-half))
