"""Advice in words."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

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
"""Characters of a sentence in a list."""


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
        yield from _beside(paragraphs[0])
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


def _beside(forecast: Forecast) -> Iterator[_Line]:
    """Yield what claims leave out about an arm, and the other arms of which they say the same."""
    keys = _some(forecast.differs_in)
    if keys and forecast.nothing_known and not forecast.near:
        yield _Line(f"  {plain(forecast.arm)}: no claim tells what {keys} changes", hang=4)
    elif keys:
        yield _Line(f"    no claim tells what else {keys} changes", hang=6)
    if forecast.alike:
        yield _Line(f"    the same of {_some(forecast.alike)}, with other work or settings", hang=6)


def _some(names: tuple[str, ...]) -> str:
    """Name a few, and count the others."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(plain, names[:_SHOWN]))}{more}"


def _forecast(forecast: Forecast) -> Iterator[_Line]:
    arm, metric = plain(forecast.arm), forecast.metric
    if forecast.published is not None:
        words = f"{_pool(forecast.published)}{_ids(forecast.published)}"
        yield _Line(f"  {arm}, {metric}, as published: {words}", hang=4)
    if forecast.pool is not None:
        head = f"  {arm}, {metric}" if forecast.published is None else "    elsewhere"
        yield _Line(f"{head}: {_pool(forecast.pool)}{_client(forecast)}{_ids(forecast.pool)}", hang=4)
    if forecast.prior is not None and forecast.published is None:
        head = "    with claims from other contexts: " if forecast.pool is not None else f"  {arm}, {metric}: "
        yield _Line(f"{head}{_prior(forecast.prior, alone=forecast.pool is None)}", hang=6)
        yield from (_Line(f"      {_contributor(each)}", hang=8) for each in forecast.prior.nearest)
    if forecast.nothing_known and (forecast.near or not forecast.differs_in):
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
    words += [f"not stated: {_parts(each.unreported)}"] if each.unreported else []
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
    unreported = f"not stated: {_parts(near.unreported)}" if near.unreported else ""
    return "; ".join(filter(None, (", ".join(filter(None, (words, other))), unreported)))


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
        for name, claims in summed.unreported.items()
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


def _ids(summed: Pool) -> str:
    return _cited(tuple(known.id for known in summed.listed))


def _cited(claims: tuple[str, ...]) -> str:
    if not claims:
        return ""
    return f" [{_some(claims)}]"
