"""Conditions and strata: records split by their levels, and arms that differ in conditions only, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.run.record import RunRecord
from tare.study.model import Arm, Study


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


def folded(study: Study, records: Sequence[RunRecord]) -> tuple[Study, tuple[RunRecord, ...]]:
    """The study without its conditions among the arms, and its records with their arms and blocks in it.

    Both as they are where there are no conditions, or where results were imported, which come so.
    """
    if not study.conditions or study.imported is not None:
        return study, tuple(records)
    names = {arm.name: _name(study, arm) for arm in study.arms}
    arms: dict[str, Arm] = {}
    for arm in study.arms:
        arms.setdefault(names[arm.name], _without(study, arm, names[arm.name]))
    places = {place: n for n, place in enumerate(sorted({_place(study, record) for record in records}), start=1)}
    kept = tuple(
        record.model_copy(update={"arm": names[record.arm], "block": places[_place(study, record)]})
        for record in records
        if record.arm in names
    )
    return study.model_copy(
        update={
            "arms": tuple(arms.values()),
            "baseline": names[study.baseline],
            "baseline_levels": study.baseline_levels if study.stages else {},
        }
    ), kept


def _without(study: Study, arm: Arm, name: str) -> Arm:
    """The arm's name and levels without conditions; its settings are those under the first of them."""
    return arm.model_copy(update={"name": name, "levels": _levels(study, arm)})


def _name(study: Study, arm: Arm) -> str:
    return arm.name if arm.control else "-".join(_levels(study, arm).values())


def _levels(study: Study, arm: Arm) -> Mapping[str, str]:
    return {factor: level for factor, level in arm.levels.items() if factor not in study.conditions}


def _place(study: Study, record: RunRecord) -> tuple[int, ...]:
    """The block first, then the conditions by the order of their levels: blocks stay in the order of time."""
    ranks = (study.factors[factor].index(record.levels[factor]) for factor in study.conditions)
    return (record.block, *ranks)
