"""Records by the levels of those conditions for which findings are told separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.run.record import RunRecord
from tare.study.model import Study


def by_strata(study: Study, records: Sequence[RunRecord]) -> tuple[tuple[Mapping[str, str], list[RunRecord]], ...]:
    """Levels of the study's strata → their records, levels in the study's order; nothing where it has no strata."""
    found: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records if study.strata else ():
        found.setdefault(tuple(record.levels[factor] for factor in study.strata), []).append(record)
    rank = {factor: {level: n for n, level in enumerate(study.factors[factor])} for factor in study.strata}

    def place(levels: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(rank[factor][level] for factor, level in zip(study.strata, levels, strict=True))

    return tuple(
        (dict(zip(study.strata, levels, strict=True)), found[levels]) for levels in sorted(found, key=place)
    )
