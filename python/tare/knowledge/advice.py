"""Whether a benchmark may be dockerized, by purpose and planned arm (Grambow report, section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tare.knowledge.benchmark import MACHINES, Benchmark, Comparing
from tare.knowledge.claim import ClaimFile, Qualitative
from tare.knowledge.forecast import Forecast, forecasts

LEAST_GAP, SAFE_GAP = 0.20, 0.30
"""The report trusts a ranking if systems differ by "greater than 20-30 %"."""


class Purpose(StrEnum):
    """What figures of a benchmark are used for."""

    RANKING = "ranking"
    PRODUCTION = "production"
    MIXING = "mixing"
    CONFIGURATIONS = "configurations"
    REPETITIONS = "repetitions"


class Answer(StrEnum):
    """Whether dockerized figures serve a purpose."""

    YES = "yes"
    IF = "only if"
    CARE = "with care"
    NO = "no"
    UNKNOWN = "unknown"
    MORE = "more"
    AS_EVER = "as ever"


@dataclass(frozen=True)
class Verdict:
    """The answer for one purpose, the reason, and the ids of the claims that support it."""

    purpose: Purpose
    answer: Answer
    because: str
    claims: tuple[str, ...] = ()


def verdicts(
    benchmark: Benchmark, predicted: Sequence[Forecast], claims: Sequence[ClaimFile], needed: float | None
) -> tuple[Verdict, ...]:
    """Return one verdict per purpose. `needed`: see `gap_needed`."""
    if needed is None:
        return _without_containers(benchmark, claims)
    return (
        _ranking(benchmark, predicted, claims, needed),
        _production(benchmark, claims),
        _mixing(claims),
        Verdict(
            Purpose.CONFIGURATIONS,
            Answer.CARE,
            "within one deployment it gives a general impression; small differences need a control",
            claims_about(claims, "configurations"),
        ),
        Verdict(
            Purpose.REPETITIONS,
            Answer.MORE,
            "containers add variance: use more blocks and longer runs",
            claims_about(claims, "repetitions"),
        ),
    )


def _without_containers(benchmark: Benchmark, claims: Sequence[ClaimFile]) -> tuple[Verdict, ...]:
    """Return verdicts for arms without containers: all `yes`, except that virtual machines are not bare servers."""
    nothing = "nothing is dockerized"
    of_all = {
        purpose: Verdict(purpose, Answer.AS_EVER if purpose is Purpose.REPETITIONS else Answer.YES, nothing)
        for purpose in Purpose
    }
    if any(arm.setup.deployment in MACHINES for arm in benchmark.arms):
        of_all[Purpose.PRODUCTION] = _production(benchmark, claims)
        why = "never compare figures from virtual machines with figures from bare servers"
        of_all[Purpose.MIXING] = Verdict(Purpose.MIXING, Answer.NO, why, _of_machines(claims))
    return tuple(of_all.values())


def _of_machines(claims: Sequence[ClaimFile]) -> tuple[str, ...]:
    """Return ids of claims that compare a virtual machine with none, without weak sources."""
    contexts = [(known.id, known.claim.context) for known in claims if not known.claim.source.weak]
    return tuple(
        name
        for name, context in contexts
        if context is not None
        and context.arm.deployment in MACHINES
        and context.baseline.deployment not in MACHINES
    )


def gap_needed(benchmark: Benchmark, predicted: Sequence[Forecast]) -> float | None:
    """Return the smallest difference, a fraction, at which a ranking is reliable; `None` if no arm is dockerized.

    It is the report's 30 %, or more if a larger effect is plausible that may hit one system and not another.
    """
    if not benchmark.dockerized:
        return None
    worst = [max(abs(end) for end in ends) for ends in plausible(predicted)]
    return max([SAFE_GAP, *(math.expm1(each) for each in worst)])


def plausible(predicted: Sequence[Forecast]) -> tuple[tuple[float, float], ...]:
    """Return the bounds of plausible effects, as log ratios: one pair per forecast.

    They come from comparable claims if an arm has any in any metric, else from claims of other contexts.
    """
    compared = [each.bounds for forecast in predicted for each in forecast.pools]
    borrowed = arms_of_other_contexts(predicted)
    priors = [each.prior for each in predicted if each.prior is not None and each.arm in borrowed]
    return (*compared, *((prior.low, prior.high) for prior in priors))


def arms_of_other_contexts(predicted: Sequence[Forecast]) -> tuple[str, ...]:
    """Return arms with applicable claims, but without a comparable one in any metric."""
    compared = {each.arm for each in predicted if each.pools}
    return tuple(dict.fromkeys(each.arm for each in predicted if each.borrowed and each.arm not in compared))


def claims_about(claims: Sequence[ClaimFile], purpose: str) -> tuple[str, ...]:
    """Return ids of qualitative claims about a purpose."""
    return tuple(
        known.id
        for known in claims
        if isinstance(known.claim.effect, Qualitative) and purpose in known.claim.effect.bears_on
    )


def _ranking(
    benchmark: Benchmark, predicted: Sequence[Forecast], claims: Sequence[ClaimFile], needed: float
) -> Verdict:
    cited = dict.fromkeys(
        [
            *claims_about(claims, "ranking"),
            *(known.id for each in predicted for summed in each.pools for known in summed.listed),
        ]
    )
    unknown = [each.arm for each in predicted if each.nothing_known]
    borrowed = arms_of_other_contexts(predicted)
    least = needed if needed > SAFE_GAP else LEAST_GAP
    answer = f"alternatives must differ by more than {100 * needed:.0f} %"
    if round(needed, 2) > SAFE_GAP and (benchmark.gap is None or benchmark.gap <= needed):
        return Verdict(Purpose.RANKING, Answer.NO, _cannot_rank(benchmark, predicted), tuple(cited))
    left = f"; no comparable claim for {', '.join(unknown)}" if unknown else ""
    left += f"; no directly comparable result for {', '.join(borrowed)}" if borrowed else ""
    if benchmark.gap is None:
        return Verdict(Purpose.RANKING, Answer.IF, f"{answer}{left}", tuple(cited))
    gap = f"they are expected to differ by {100 * benchmark.gap:.0f} %: {answer}{left}"
    if benchmark.gap < least:
        return Verdict(Purpose.RANKING, Answer.NO, gap, tuple(cited))
    if unknown:
        return Verdict(Purpose.RANKING, Answer.UNKNOWN, gap, tuple(cited))
    return Verdict(Purpose.RANKING, Answer.YES if benchmark.gap > needed else Answer.IF, gap, tuple(cited))


def _cannot_rank(benchmark: Benchmark, predicted: Sequence[Forecast]) -> str:
    """Say which arm leaves so much open that the order of systems could be the containers' doing."""
    worst = max(
        (max(abs(end) for end in ends), forecast.arm, ends, forecast.borrowed)
        for forecast in predicted
        for ends in plausible([forecast])
    )
    _, arm, (low, high), borrowed = worst
    gap = "" if benchmark.gap is None else f" by more than the expected {100 * benchmark.gap:.0f} %"
    if borrowed:
        return (
            f"cannot rank before {arm} is measured: claims from other contexts leave "
            f"{100 * math.expm1(low):+.0f} to {100 * math.expm1(high):+.0f} % open"
        )
    size = math.expm1(low if abs(low) > high else high)
    return f"cannot rank: {arm} may change one system{gap} (up to {100 * size:+.0f} %) and not another"


def _production(benchmark: Benchmark, claims: Sequence[ClaimFile]) -> Verdict:
    cited = claims_about(claims, "production")
    same = [arm.name for arm in benchmark.arms if arm.setup.deployment == benchmark.production]
    if benchmark.production is None:
        why = "absolute figures hold only for the deployment that they were measured in"
        return Verdict(Purpose.PRODUCTION, Answer.IF, why, cited)
    if len(same) == len(benchmark.arms):
        why = f"production is deployed as all arms are ({benchmark.production}); network and storage must match too"
        return Verdict(Purpose.PRODUCTION, Answer.YES, why, cited)
    if same:
        why = f"production is like {', '.join(same)} ({benchmark.production}); figures of other arms do not apply"
        return Verdict(Purpose.PRODUCTION, Answer.IF, why, cited)
    return Verdict(
        Purpose.PRODUCTION, Answer.NO, f"no arm is deployed as production ({benchmark.production})", cited
    )


def _mixing(claims: Sequence[ClaimFile]) -> Verdict:
    why = "never compare figures from containers with figures from bare servers, published ones included"
    return Verdict(Purpose.MIXING, Answer.NO, why, claims_about(claims, "mixing"))


_OF: Mapping[Comparing, Purpose] = {
    Comparing.SYSTEMS: Purpose.RANKING,
    Comparing.CONFIGURATIONS: Purpose.CONFIGURATIONS,
    Comparing.VERSIONS: Purpose.CONFIGURATIONS,
    Comparing.ABSOLUTE: Purpose.PRODUCTION,
}


@dataclass(frozen=True)
class Advice:
    """The answer. `headline`: the purpose in question; `gap`: what a ranking needs, see `gap_needed`.

    `background`: ids of qualitative claims on what overheads depend on.
    """

    benchmark: Benchmark
    verdicts: tuple[Verdict, ...]
    forecasts: tuple[Forecast, ...]
    gap: float | None
    headline: Purpose | None
    background: tuple[str, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Arms without an applicable claim."""
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.nothing_known))

    @property
    def not_measured(self) -> tuple[str, ...]:
        """Arms without a comparable claim: the unknown ones, and those with claims of other contexts only."""
        without = {*self.unknown, *arms_of_other_contexts(self.forecasts)}
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.arm in without))

    @property
    def disputed(self) -> tuple[str, ...]:
        """Arms with claims that contradict each other."""
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.disputes))

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Arms without a pooled effect in any metric, including the unknown ones."""
        sure = {each.arm for each in self.forecasts for summed in each.pools if summed.effect is not None}
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.arm not in sure))


def advise(benchmark: Benchmark, claims: Sequence[ClaimFile]) -> Advice:
    """Return what `claims` say about `benchmark`."""
    predicted = forecasts(benchmark, claims)
    needed = gap_needed(benchmark, predicted)
    return Advice(
        benchmark=benchmark,
        verdicts=verdicts(benchmark, predicted, claims, needed),
        forecasts=predicted,
        gap=needed,
        headline=None if benchmark.comparing is None else _OF[benchmark.comparing],
        background=claims_about(claims, "overhead") if benchmark.dockerized else (),
    )
