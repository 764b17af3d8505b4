"""A claim's effect and context in a few words, for lists and for advice."""

from __future__ import annotations

import math

from tare.knowledge.claim import Between, Claim, Measured, Setup

_LONGEST = 300
"""Of a sentence in a list."""


def percent(log_ratio: float) -> str:
    """A log ratio as a relative change: -0.0513 → `-5.0 %`."""
    return f"{100 * math.expm1(log_ratio):+.1f} %"


def plain(text: str, most: int = 80) -> str:
    """A text on one line of at most `most` characters, control and direction marks escaped."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def interval(low: float, high: float) -> str:
    """Two log ratios as relative changes: `[-5.0 %, +1.2 %]`."""
    return f"[{percent(low)}, {percent(high)}]"


def effect_words(claim: Claim) -> str:
    """`read_latency_mean +1.4 % (standard error 1.0 %, n = 30)`, a range, or the claim's sentence."""
    effect = claim.effect
    if isinstance(effect, Measured):
        spread = "" if effect.se is None else f" (standard error {100 * effect.se:.1f} %, n = {effect.n})"
        return f"{effect.metric} {percent(effect.log_ratio)}{spread}"
    if isinstance(effect, Between):
        size = ", size only" if effect.absolute else ""
        return f"{effect.metric} {effect.printed}{size}"
    return plain(claim.says, _LONGEST)


def context_words(claim: Claim) -> str:
    """What was measured, and how it was deployed."""
    if claim.context is None:
        return "in general"
    database, load = claim.context.database, claim.context.load
    version = f" {database.version}" if database.version else ""
    return plain(f"{database.name}{version}, {load.workload}: {setup_words(claim.context.arm)}", _LONGEST)


def setup_words(setup: Setup) -> str:
    """Deployment, path, storage and engine, as far as they are told."""
    told: list[str] = [setup.deployment]
    told += [] if setup.network in (None, "none") else [f"path {setup.network}"]
    told += [] if setup.storage in (None, "none") else [f"data on {setup.storage}"]
    engine = "/".join(each for each in (setup.engine, setup.runtime) if each not in (None, "none"))
    return ", ".join([*told, *([engine] if engine else [])])
