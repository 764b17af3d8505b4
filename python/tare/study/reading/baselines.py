"""The baseline of each arm, and the published figures of arms relative to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tare.study.model import Published
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import Levels, NamedLevels, resolved, whole
from tare.study.reading.file import LevelRefs, LevelRule, PublishedSpec, StudyFile
from tare.study.suggest import did_you_mean


@dataclass(frozen=True)
class Baselines:
    """Baselines of a study. `first`: the first or only one; `levels`: those of every baseline, if several."""

    first: NamedLevels
    levels: Levels

    def of(self, levels: Levels) -> Levels:
        """Return the levels of the arm that an arm with `levels` is compared with."""
        return {**levels, **self.levels} if self.levels else self.first.levels


def baselines(
    document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], arms: Sequence[NamedLevels]
) -> Baselines:
    """Read `baseline`: an arm's name, all its levels, or levels of some factors. Every arm must have a baseline."""
    where: KeyPath = ("baseline",)
    if isinstance(file.baseline, str):
        wanted = file.baseline
        for arm in arms:
            if arm.name == wanted:
                return Baselines(arm, {})
        hint = did_you_mean(wanted, [arm.name for arm in arms], kind="arms")
        raise document.error(where, f"no arm is called {wanted!r}", hint=hint)
    levels = resolved(document, where, file.baseline, names)
    first = next((arm for arm in arms if levels.items() <= arm.levels.items()), None)
    if first is None:
        hint = "is it excluded, or not among the arms?"
        raise document.error(where, "no arm has these levels", hint=hint)
    if len(levels) == len(names):
        return Baselines(first, {})
    several = Baselines(first, levels)
    have = [arm.levels for arm in arms]
    for arm in arms:
        if several.of(arm.levels) not in have:
            hint = "name a level of each factor, or do not exclude the arm it is compared with"
            raise document.error(where, f"the arm {arm.name!r} has no baseline with these levels", hint=hint)
    return several


@dataclass(frozen=True)
class FileArms:
    """Levels of the factors, every arm of the file, and the arms that run at this scale."""

    names: Mapping[str, Sequence[str]]
    every: Sequence[NamedLevels]
    kept: Sequence[NamedLevels]


def published(document: Document, file: StudyFile, arms: FileArms, baseline: Baselines) -> tuple[Published, ...]:
    """Return the published figures of arms that run; `relative` is derived if only values are given."""
    specs: list[PublishedSpec] = []
    levels: list[Levels] = []
    places: list[KeyPath] = []
    for n, spec in enumerate(file.published):
        for refs in combinations_of(spec.levels):
            specs.append(spec)
            levels.append(_levels(document, ("published", n, "levels"), file, refs, arms.names))
            places.append(("published", n))
    figures: list[Published] = []
    for where, spec, own in zip(places, specs, levels, strict=True):
        if not _any_has(arms.every, own):
            raise document.error((*where, "levels"), "no arm has these levels")
        if any(other.levels == own and other.metric == spec.metric for other in figures):
            raise document.error(where, f"a second {spec.metric} for the same arm")
        if spec.value is not None and spec.unit is None:
            raise document.error(where, "a value without its unit", hint="add unit: …")
        reference = _figure_of(baseline.of(own), spec.metric, specs, levels)
        figures.append(
            Published(
                levels=own,
                metric=spec.metric,
                value=spec.value,
                unit=spec.unit,
                relative=spec.relative if spec.relative is not None else _derived(document, where, spec, reference),
                where=spec.where,
            )
        )
    return tuple(each for each in figures if _any_has(arms.kept, each.levels))


def _any_has(arms: Sequence[NamedLevels], levels: Levels) -> bool:
    return any(levels.items() <= arm.levels.items() for arm in arms)


def combinations_of(rule: LevelRule) -> Iterator[LevelRefs]:
    """Yield single levels of a rule: a source's figure may cover several levels that it does not separate."""
    several = [each if isinstance(each, tuple) else (each,) for each in rule.values()]
    for chosen in product(*several):
        yield dict(zip(rule, chosen, strict=True))


def _levels(
    document: Document, where: KeyPath, file: StudyFile, refs: LevelRefs, names: Mapping[str, Sequence[str]]
) -> Levels:
    """Resolve a level of every factor; of conditions none, or those of all strata."""
    asked = {factor: levels for factor, levels in names.items() if factor not in file.conditions}
    strata = {factor: names[factor] for factor in file.strata if any(each in refs for each in file.strata)}
    return whole(document, where, refs, {**asked, **strata})


def _figure_of(
    wanted: Levels, metric: str, specs: Sequence[PublishedSpec], levels: Sequence[Levels]
) -> PublishedSpec | None:
    pairs = zip(specs, levels, strict=True)
    return next((spec for spec, have in pairs if have == wanted and spec.metric == metric), None)


def _derived(document: Document, where: KeyPath, spec: PublishedSpec, reference: PublishedSpec | None) -> float:
    if spec.value is None:
        raise document.error(
            where, "neither a value nor a relative figure", hint="give value and unit, or relative"
        )
    if reference is None or reference.value is None:
        hint = "publish the baseline's value too, or give relative"
        raise document.error(where, f"no published {spec.metric} of the baseline to relate it to", hint=hint)
    if reference.unit != spec.unit:
        raise document.error((*where, "unit"), f"{spec.unit!r} is not the baseline's unit {reference.unit!r}")
    return spec.value / reference.value - 1.0
