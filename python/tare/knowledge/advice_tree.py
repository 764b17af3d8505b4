"""Advice as a JSON tree."""

from __future__ import annotations

import math
from typing import Any

from tare.knowledge.advice import Advice
from tare.knowledge.advice_text import Proposed
from tare.knowledge.forecast import Forecast
from tare.knowledge.pool import Pool, Pooled
from tare.knowledge.prior import Prior


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
        "forecasts": [
            {**_forecast_tree(each), "arm": arm} for each in advice.forecasts for arm in (each.arm, *each.alike)
        ],
        "unknown": _with_alike(advice, advice.unknown),
        "not_measured": _with_alike(advice, advice.not_measured),
        "disputed": _with_alike(advice, advice.disputed),
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


def _with_alike(advice: Advice, arms: tuple[str, ...]) -> list[str]:
    alike = {each.arm: each.alike for each in advice.forecasts}
    return [name for arm in arms for name in (arm, *alike[arm])]


def _forecast_tree(forecast: Forecast) -> dict[str, Any]:
    summed = forecast.pool
    tree: dict[str, Any] = {
        "arm": forecast.arm,
        "metric": forecast.metric,
        "prior": None if forecast.prior is None else _prior_tree(forecast.prior),
        "disputed": [[each.one.id, each.other.id] for each in forecast.disputes],
        "differs_in": list(forecast.differs_in),
        "published": None if forecast.published is None else _pool_tree(forecast.published),
    }
    if summed is None:
        near = [
            {"claim": each.claim.id, "differs_in": list(each.differs_in), "unreported": list(each.unreported)}
            for each in forecast.near
        ]
        return {**tree, "comparable": [], "near": near}
    return {**tree, **_pool_tree(summed), "other_client": forecast.other_client}


def _pool_tree(summed: Pool) -> dict[str, Any]:
    effect = summed.effect
    return {
        "comparable": [known.id for known in summed.listed],
        "weighted": [known.id for known in summed.weighted] if effect else [],
        "range": [math.expm1(summed.low), math.expm1(summed.high)],
        "own_intervals": None if summed.own is None else [math.expm1(end) for end in summed.own],
        "size_only": summed.size_only,
        "unreported": dict(summed.unreported),
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
                "unreported": list(each.unreported),
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
