"""Advice in words, and as a JSON tree."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tare.knowledge.advice import Advice
from tare.knowledge.claim import Between, Claim, Measured, Qualitative, Setup
from tare.knowledge.dispute import Dispute
from tare.knowledge.forecast import Forecast, Near
from tare.knowledge.pool import Pool, Pooled
from tare.knowledge.prior import Contributor, Prior
from tare.knowledge.smallest import Rounds
from tare.one_line import plain
from tare.plural import counted

_LONGEST = 300
"""Of a sentence in a list."""


_SHOWN = 6
"""Most claims that a line names; `--json` has all."""
_QUANTILE_OF_ONE_KIND = re.compile(r".+_latency_p\d+")
_TOGETHER = "\N{NO-BREAK SPACE}"
"""A space at which `textwrap` does not break a line."""


def percent(log_ratio: float) -> str:
    """A log ratio as a relative change: -0.0513 → `-5.0 %`."""
    return f"{100 * math.expm1(log_ratio):+z.1f} %"


def interval(low: float, high: float) -> str:
    """Two log ratios as relative changes: `[-5.0 %, +1.2 %]`."""
    return f"[{percent(low)}, {percent(high)}]"


def effect_words(claim: Claim) -> str:
    """`read_latency_mean +1.4 % (standard error 1.0 %, n = 30)`, a range, or the claim's sentence."""
    return f"{_figure_words(claim)}{' (weak source)' if claim.source.weak else ''}"


def _figure_words(claim: Claim) -> str:
    effect = claim.effect
    if isinstance(effect, Measured):
        spread = "" if effect.se is None else f" (standard error {100 * effect.se:.1f} %, n = {effect.n})"
        return f"{effect.metric} {percent(effect.log_ratio)}{spread}"
    if isinstance(effect, Between):
        size = ", size only" if effect.absolute else ""
        return f"{effect.metric} {effect.printed}{size}"
    return plain(claim.says, _LONGEST)


def source_words(claim: Claim) -> str:
    """Authors, title and year, as far as known; for the user's own findings the digest of their plan."""
    source = claim.source
    if source.store is not None:
        return f"own measurement: {source.title}, store {source.store[:12]}"
    head = source.title if source.authors is None else f"{source.authors}: {source.title}"
    return head if source.year is None else f"{head}, {source.year}"


def context_words(claim: Claim) -> str:
    """What was measured, and how it was deployed."""
    if claim.context is None:
        return "in general"
    database, load = claim.context.database, claim.context.load
    version = f" {database.version}" if database.version else ""
    return plain(f"{database.name}{version}, {load.workload}: {setup_words(claim.context.arm)}", _LONGEST)


def setup_words(setup: Setup) -> str:
    """Deployment, path, storage and engine, as far as known."""
    words: list[str] = [setup.deployment]
    words += [] if setup.network in (None, "none") else [f"path {setup.network}"]
    words += [] if setup.storage in (None, "none") else [f"data on {setup.storage}"]
    engine = "/".join(each for each in (setup.engine, setup.runtime) if each not in (None, "none"))
    return ", ".join([*words, *([engine] if engine else [])])


@dataclass(frozen=True)
class _Line:
    """`hang`: columns of indentation for continuation lines."""

    text: str
    hang: int = 0


@dataclass(frozen=True)
class Proposed:
    """The smallest study with an answer: where it was written and how long it takes, or why there is none."""

    rounds: Rounds | None = None
    file: str | None = None
    why_none: str | None = None


NOTHING_OPEN = Proposed()


def lines(advice: Advice, proposed: Proposed, width: int) -> Iterator[str]:
    """Return the advice in lines of `width` characters, unless a word is longer; figures stay with their unit."""
    for line in _whole(advice, proposed):
        hang = " " * line.hang
        text = line.text.replace(" %", f"{_TOGETHER}%").replace("± ", f"±{_TOGETHER}")
        wrapped = textwrap.wrap(text, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
        yield from (each.replace(_TOGETHER, " ") for each in wrapped or [""])


def _whole(advice: Advice, proposed: Proposed) -> Iterator[_Line]:
    """Yield one line per statement, however long."""
    yield _Line(f"Is it safe to dockerize {plain(advice.benchmark.name)}?")
    if advice.headline is not None:
        (verdict,) = [each for each in advice.verdicts if each.purpose == advice.headline]
        yield _Line(f"For {advice.benchmark.comparing}: {verdict.answer.value}; {verdict.because}.")
    yield _Line("")
    for verdict in advice.verdicts:
        line = f"  {verdict.purpose.value:<15}{verdict.answer.value:<11}"
        yield _Line(f"{line}{verdict.because}{_cited(verdict.claims)}", hang=len(line))
    if advice.forecasts:
        yield _Line("")
        yield _Line("Predicted overhead against the baseline:")
    for arm, each in groupby(advice.forecasts, key=lambda one: one.arm):
        paragraphs = list(each)
        shown = [one for one in paragraphs if not _QUANTILE_OF_ONE_KIND.fullmatch(one.metric or "")]
        for forecast in shown:
            yield from _forecast(forecast)
        if left_out := len(paragraphs) - len(shown):
            yield _Line(
                f"  {plain(arm)}: {counted(left_out, 'quantile')} of single kinds of operation in --json", hang=4
            )
    if advice.background:
        yield _Line("")
        yield _Line(f"What overheads depend on: {', '.join(advice.background)}")
    if advice.unknown:
        yield _Line("")
        yield _Line(f"Nothing is known about {', '.join(map(plain, advice.unknown))}.")
    if borrowed := [arm for arm in advice.not_measured if arm not in advice.unknown]:
        yield _Line("")
        yield _Line(f"Known only from other contexts: {', '.join(map(plain, borrowed))}.")
    yield from _study(proposed)


def as_tree(advice: Advice, proposed: Proposed) -> dict[str, Any]:
    """Return the whole advice; effects are fractions."""
    benchmark, rounds = advice.benchmark, proposed.rounds
    return {
        "benchmark": benchmark.name,
        "comparing": benchmark.comparing,
        "production": benchmark.production,
        "gap": benchmark.gap,
        "gap_needed": advice.gap,
        "headline": advice.headline,
        "verdicts": [
            {"purpose": each.purpose, "answer": each.answer, "because": each.because, "claims": list(each.claims)}
            for each in advice.verdicts
        ],
        "forecasts": [_forecast_tree(each) for each in advice.forecasts],
        "unknown": list(advice.unknown),
        "not_measured": list(advice.not_measured),
        "disputed": list(advice.disputed),
        "background": list(advice.background),
        "rounds": None
        if rounds is None
        else {
            "target": rounds.target,
            "spread": rounds.spread,
            "blocks": rounds.blocks,
            "enough": rounds.enough,
            "seconds": rounds.seconds,
        },
        "study": proposed.file,
        "why_no_study": proposed.why_none,
    }


def _forecast(forecast: Forecast) -> Iterator[_Line]:
    arm, metric = plain(forecast.arm), forecast.metric
    if forecast.pool is not None:
        cited = _cited(tuple(known.id for known in forecast.pool.listed))
        yield _Line(f"  {arm}, {metric}: {_pool(forecast.pool)}{_client(forecast)}{cited}", hang=4)
    if forecast.prior is not None:
        head = "    with claims from other contexts: " if forecast.pool is not None else f"  {arm}, {metric}: "
        yield _Line(f"{head}{_prior(forecast.prior, alone=forecast.pool is None)}", hang=6)
        yield from (_Line(f"      {_contributor(each)}", hang=8) for each in forecast.prior.nearest)
    if forecast.nothing_known:
        yield _Line(f"  {arm}: no claim is comparable", hang=4)
        for near in forecast.near:
            weak = " (weak source)" if near.claim.claim.source.weak else ""
            yield _Line(f"    near, {_apart(near)}: {near.claim.id}{weak}", hang=6)
    for dispute in forecast.disputes:
        yield _Line(f"    disputed: {_dispute(dispute)}", hang=6)


def _prior(prior: Prior, *, alone: bool) -> str:
    """`-18.5 % [-43.0 %, +16.5 %] (90 %), 27 claims of 5 studies, none from this context`."""
    studies = "one study" if prior.studies == 1 else f"{prior.studies} studies"
    other = ", none from this context" if alone else ""
    ends = interval(prior.low, prior.high)
    return f"{percent(prior.point)} {ends} (90 %), {counted(prior.claims, 'claim')} of {studies}{other}"


def _contributor(each: Contributor) -> str:
    """Return a claim behind a prior, its figure, and how its context differs."""
    words = [f"differs in {_parts(each.differs_in)}"] if each.differs_in else []
    words += [f"not stated: {_parts(each.untold)}"] if each.untold else []
    effect = each.claim.claim.effect
    figure = percent(effect.log_ratio) if isinstance(effect, Measured) else effect_words(each.claim.claim)
    return f"{each.claim.id} ({figure}): {'; '.join(words) or 'from this context'}"


def _dispute(dispute: Dispute) -> str:
    sides = " against ".join(f"{side.id}, {effect_words(side.claim)}" for side in (dispute.one, dispute.other))
    return f"{sides}; --try FILE writes the study that decides it here"


def _client(forecast: Forecast) -> str:
    """Return how many claims had a differently deployed client, which their keys do not show."""
    if forecast.pool is None or not forecast.other_client:
        return ""
    of = len(forecast.pool.listed)
    return "; client deployed differently" + (
        "" if forecast.other_client == of else f" in {forecast.other_client} of {of}"
    )


def _apart(near: Near) -> str:
    """Return how a claim differs from the arm, and what it does not state."""
    words = "in words" if isinstance(near.claim.claim.effect, Qualitative) else ""
    other = f"but differs in {_parts(near.differs_in)}" if near.differs_in else ""
    untold = f"not stated: {_parts(near.untold)}" if near.untold else ""
    return "; ".join(filter(None, (", ".join(filter(None, (words, other))), untold)))


def _parts(names: tuple[str, ...]) -> str:
    return ", ".join(each.replace("_", " ") for each in names)


def _pool(summed: Pool) -> str:
    if summed.effect is not None:
        studies = "one study" if len(summed.studies) == 1 else f"{len(summed.studies)} studies"
        return f"{_pooled(summed.effect)} from {summed.effect.k} claims of {studies}"
    size = ", size only, unknown sign" if summed.size_only else ""
    many = "1 claim" if len(summed.listed) == 1 else f"{len(summed.listed)} claims"
    if summed.low == summed.high:
        one = "" if summed.own is None else f" {interval(*summed.own)}"
        return f"{percent(summed.low)}{one} in {many}{'' if one else ', no interval'}{size}{_untold(summed)}"
    own = "" if summed.own is None else f", own intervals within {interval(*summed.own)}"
    return f"{percent(summed.low)} to {percent(summed.high)} in {many}, not pooled{own}{size}{_untold(summed)}"


def _untold(summed: Pool) -> str:
    """Return the facts that a figure's source does not state, so that its setup may differ."""
    of = len(summed.listed)
    words = [
        name.replace("_", " ") + ("" if claims == of else f" by {claims} of {of}")
        for name, claims in summed.untold.items()
    ]
    return f"; not stated: {', '.join(words)}" if words else ""


def _pooled(effect: Pooled) -> str:
    return (
        f"{percent(effect.point)} {interval(effect.low, effect.high)}, "
        f"the next one within {interval(effect.predicted_low, effect.predicted_high)} (approximate),"
    )


def _study(proposed: Proposed) -> Iterator[_Line]:
    if proposed == NOTHING_OPEN:
        return
    none = f"none, as {proposed.why_none}" if proposed.why_none else "give --write FILE"
    yield _Line("")
    yield _Line(f"The smallest study that would answer this: {proposed.file or none}")
    rounds = proposed.rounds
    if rounds is not None:
        from tare.report.figures import duration  # reports are slow to import

        time = "unknown time" if rounds.seconds is None else f"about {duration(rounds.seconds)}"
        more = "" if rounds.enough else "more than "
        yield _Line(
            f"  {more}{rounds.blocks} rounds for ± {100 * rounds.target:g} %, {time} of machine time, "
            f"if arms vary by {100 * rounds.spread:.2f} % from round to round ({rounds.spread_from}).",
            hang=2,
        )


def _cited(claims: tuple[str, ...]) -> str:
    if not claims:
        return ""
    more = f" and {len(claims) - _SHOWN} more" if len(claims) > _SHOWN else ""
    return f" [{', '.join(claims[:_SHOWN])}{more}]"


def _forecast_tree(forecast: Forecast) -> dict[str, Any]:
    summed = forecast.pool
    tree: dict[str, Any] = {
        "arm": forecast.arm,
        "metric": forecast.metric,
        "prior": None if forecast.prior is None else _prior_tree(forecast.prior),
        "disputed": [[each.one.id, each.other.id] for each in forecast.disputes],
    }
    if summed is None:
        near = [
            {"claim": each.claim.id, "differs_in": list(each.differs_in), "untold": list(each.untold)}
            for each in forecast.near
        ]
        return {**tree, "comparable": [], "near": near}
    effect = summed.effect
    return {
        **tree,
        "comparable": [known.id for known in summed.listed],
        "weighted": [known.id for known in summed.weighted] if effect else [],
        "range": [math.expm1(summed.low), math.expm1(summed.high)],
        "own_intervals": None if summed.own is None else [math.expm1(end) for end in summed.own],
        "other_client": forecast.other_client,
        "size_only": summed.size_only,
        "untold": dict(summed.untold),
        "why_not_pooled": summed.why,
        "pooled": None if effect is None else _pooled_tree(effect),
    }


def _prior_tree(prior: Prior) -> dict[str, Any]:
    return {
        "point": math.expm1(prior.point),
        "interval": [math.expm1(prior.low), math.expm1(prior.high)],
        "claims": prior.claims,
        "studies": prior.studies,
        "nearest": [
            {
                "claim": each.claim.id,
                "weight": each.weight,
                "differs_in": list(each.differs_in),
                "untold": list(each.untold),
            }
            for each in prior.nearest
        ],
    }


def _pooled_tree(effect: Pooled) -> dict[str, Any]:
    return {
        "point": math.expm1(effect.point),
        "interval": [math.expm1(effect.low), math.expm1(effect.high)],
        "prediction_approximate": [math.expm1(effect.predicted_low), math.expm1(effect.predicted_high)],
        "tau2": effect.tau2,
        "k": effect.k,
        "moderators": {name: [b, low, high] for name, b, low, high in effect.moderators},
    }
