"""Predict each published study from the others: `.venv/bin/python -m tools.leave_one_out`, a Markdown table.

For each effect of a study (an arm in a metric), the comparable claims of others are summed up as `tare advise` does
it: once those of the other four of the five replayed studies, once those of everything else that is known.
Below it, how often the prior's 90 % interval from all other studies holds, and how far off it is beside two naive
answers: no overhead at all, and the mean of all other claims in that metric. Own findings of tare are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.knowledge.advice_text import interval, percent
from tare.knowledge.benchmark import PlannedArm
from tare.knowledge.claim import Between, Claim, ClaimFile, Measured, load_claims
from tare.knowledge.comparable import Key, key_of
from tare.knowledge.forecast import comparable
from tare.knowledge.pool import Pool, pool
from tare.knowledge.prior import Prior, applicable, learned, point_of, prior_of

FIVE = ("percona-2016", "grambow-2018", "seybold-2018", "casalicchio-2017", "bth-thesis")


def main() -> None:
    """Print the table."""
    claims = [known for known in load_claims() if known.claim.source.store is None]
    print("| left out | effect | published | from the other four | from all other claims |")
    print("|---|---|---|---|---|")
    for study in FIVE:
        rows = list(_rows(study, claims))
        for row in rows or [(study, "none with a figure", "", "", "")]:
            print("| " + " | ".join(row) + " |")
    print()
    print("| left out | effects | within the 90 % interval | half-width | error | of no overhead | of the mean |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    every = [outcome for study in sorted({known.study for known in claims}) for outcome in _outcomes(study, claims)]
    for study in sorted({each.study for each in every}):
        print(_summary(study, [each for each in every if each.study == study]))
    print(_summary("all", every))


@dataclass(frozen=True)
class _Outcome:
    """A claim and what the other studies had said: log ratios."""

    study: str
    found: float
    prior: Prior
    mean: float


def _outcomes(study: str, claims: Sequence[ClaimFile]) -> Iterator[_Outcome]:
    rest = [known for known in claims if known.study != study]
    held_out = [known for known in applicable(claims) if known.study == study]
    spreads = learned(rest) if held_out else None
    for known in held_out:
        context, metric = known.claim.context, known.claim.effect.metric
        if context is None or metric is None or spreads is None:
            continue
        arm = PlannedArm("held out", context.arm, context.baseline, context.client_host or "same")
        others = [point_of(each).y for each in applicable(rest) if each.claim.effect.metric == metric]
        if prior := prior_of(arm, context.database.name, metric, rest, spreads):
            yield _Outcome(study, point_of(known).y, prior, statistics.fmean(others))


def _summary(name: str, outcomes: Sequence[_Outcome]) -> str:
    within = sum(each.prior.low <= each.found <= each.prior.high for each in outcomes)
    width = statistics.median((each.prior.high - each.prior.low) / 2 for each in outcomes)
    errors = (
        statistics.fmean(abs(each.prior.point - each.found) for each in outcomes),
        statistics.fmean(abs(each.found) for each in outcomes),
        statistics.fmean(abs(each.mean - each.found) for each in outcomes),
    )
    figures = " | ".join(f"{100 * each:.0f}" for each in (width, *errors))
    return f"| {name} | {len(outcomes)} | {within} | {figures} |"


def _rows(study: str, claims: Sequence[ClaimFile]) -> Iterator[tuple[str, str, str, str, str]]:
    groups: dict[tuple[Key, str], list[ClaimFile]] = {}
    for known in claims:
        key = key_of(known.claim)
        if known.study == study and key is not None and known.claim.how.summary_of is None:
            groups.setdefault((key, _database(known.claim)), []).append(known)
    others = [known for known in claims if known.study != study]
    four = [known for known in others if known.study in FIVE]
    for (key, database), held_out in groups.items():
        host = f"{key.client_host} host" if key.client_host else "host not told"
        setup = (key.deployment, key.network or "path not told", key.storage or "storage not told", host)
        effect = f"{', '.join(setup)}: {key.metric}"
        yield (
            study,
            effect,
            _published(held_out),
            _predicted(comparable(four, key, database)),
            _predicted(comparable(others, key, database)),
        )


def _database(claim: Claim) -> str:
    return claim.context.database.name if claim.context is not None else ""


def _published(claims: Sequence[ClaimFile]) -> str:
    effects = [known.claim.effect for known in claims]
    points = [effect.log_ratio for effect in effects if isinstance(effect, Measured)]
    ends = [end for e in effects if isinstance(e, Between) for end in (e.low, e.high) if end is not None]
    low, high = min(points + ends), max(points + ends)
    sign = " (size)" if ends else ""
    many = f", {len(claims)} figures" if len(claims) > 1 else ""
    return (percent(low) if math.isclose(low, high) else f"{percent(low)} to {percent(high)}") + many + sign


def _predicted(claims: Sequence[ClaimFile]) -> str:
    """Sum up claims that differ in what the held-out one leaves open separately, as they cannot be pooled."""
    alike: dict[Key | None, list[ClaimFile]] = {}
    for known in claims:
        alike.setdefault(key_of(known.claim), []).append(known)
    return "; ".join(words for group in alike.values() if (words := _summed(pool(group)))) or "nothing comparable"


def _summed(summed: Pool | None) -> str:
    if summed is None:
        return ""
    if summed.effect is not None:
        return f"{percent(summed.effect.point)}, next within {interval(*summed.bounds)}"
    names = ", ".join(known.id for known in summed.listed)
    span = percent(summed.low)
    return f"{span if summed.low == summed.high else f'{span} to {percent(summed.high)}'}, no interval ({names})"


if __name__ == "__main__":
    main()
