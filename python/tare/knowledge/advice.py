"""Is it safe to dockerize this benchmark? What the claims say, by purpose and by planned arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.knowledge.benchmark import Benchmark, Comparing
from tare.knowledge.forecast import Forecast, forecasts
from tare.knowledge.read import Known
from tare.knowledge.verdicts import Purpose, Verdict, gap_needed, said_of, verdicts

_OF: Mapping[Comparing, Purpose] = {
    Comparing.SYSTEMS: Purpose.RANKING,
    Comparing.CONFIGURATIONS: Purpose.CONFIGURATIONS,
    Comparing.VERSIONS: Purpose.CONFIGURATIONS,
    Comparing.ABSOLUTE: Purpose.PRODUCTION,
}


@dataclass(frozen=True)
class Advice:
    """The answer. `headline`: the purpose that was asked about; `gap`: what a ranking needs, see `gap_needed`.

    `background`: ids of claims in words on what overheads depend on.
    """

    benchmark: Benchmark
    verdicts: tuple[Verdict, ...]
    forecasts: tuple[Forecast, ...]
    gap: float | None
    headline: Purpose | None
    background: tuple[str, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Arms of which no claim is comparable."""
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.nothing_known))

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Arms without a pooled effect in any metric, those of which nothing is known included."""
        sure = {each.arm for each in self.forecasts if each.pool is not None and each.pool.effect is not None}
        return tuple(dict.fromkeys(each.arm for each in self.forecasts if each.arm not in sure))


def advise(benchmark: Benchmark, claims: Sequence[Known]) -> Advice:
    """What `claims` say of `benchmark`."""
    found = forecasts(benchmark, claims)
    needed = gap_needed(benchmark, found)
    return Advice(
        benchmark=benchmark,
        verdicts=verdicts(benchmark, found, claims, needed),
        forecasts=found,
        gap=needed,
        headline=None if benchmark.comparing is None else _OF[benchmark.comparing],
        background=said_of(claims, "overhead") if benchmark.dockerized else (),
    )
