"""Factors, their levels, and the arms that they form."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tare.study.model import Scalar
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.file import Factor, KeyFactor, LevelRefs, LevelRule, StudyFile
from tare.study.reading.patches import TEMPLATE, apply, apply_all, path_of, plain
from tare.study.suggest import did_you_mean

Levels = Mapping[str, str]
"""Factor → name of one of its levels."""
Rule = Mapping[str, tuple[str, ...]]
"""Factor → names of some of its levels."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MOST_ARMS = 1000
"""More arms would never be run; a product of a few long factors can have billions."""
_LONGEST_NAME = 40
"""Arm names are part of container names and of tables; longer ones are cut and distinguished by a digest."""
_VARIED_UNNAMED = (
    "sut.deployment",
    "sut.engine",
    "sut.runtime",
    "sut.confinement.",
    "sut.network",
    "sut.storage.",
    "sut.vm.",
    "sut.pod.",
    "client.deployment",
    "client.engine",
    "client.runtime",
    "client.confinement.",
    "client.network",
    "workload.",
    "monitors.",
)
"""Keys that a factor without `sets` is assumed to vary: where programs run, and what they are asked to do."""
_SELF_TELLING = re.compile(r"(?!(?:true|false)$)[A-Za-z]")


@dataclass(frozen=True)
class NamedLevels:
    """An arm whose settings are not resolved yet. `path`: where the file names it; () for a product's arm."""

    name: str
    levels: Levels
    path: KeyPath = ()


def level_name(value: Scalar) -> str:
    """Return a level's name from its value: 25 → "25", true → "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def level_names(document: Document, file: StudyFile) -> dict[str, tuple[str, ...]]:
    """Factor → names of its levels, in the file's order. Raises `StudyError` for unusable names."""
    names: dict[str, tuple[str, ...]] = {}
    for factor, spec in file.factors.items():
        levels = tuple(level_name(level) for level in spec.levels)
        for n, level in enumerate(levels):
            where: KeyPath = ("factors", factor, "levels", n)
            if level in levels[:n]:
                raise document.error(where, f"level {level!r} is listed twice")
            if not _PLAIN.fullmatch(level):
                hint = "name it: levels: {NAME: VALUE}; a name has letters, digits, dots and hyphens"
                raise document.error(where, f"{level!r} cannot be a level's name", hint=hint)
        names[factor] = levels
        _refuse_unnamed_keys(document, factor, spec)
    _refuse_common_keys(document, file)
    return names


def with_levels(document: Document, file: StudyFile, levels: Levels) -> Document:
    """Return the document with the patches of one arm's levels applied."""
    for factor, level in levels.items():
        spec = file.factors[factor]
        if isinstance(spec, KeyFactor):
            document = apply(document, _source(factor, spec, level), spec.sets, TEMPLATE)
        else:
            document = apply_all(document, ("factors", factor, "levels", level), spec.levels[level], TEMPLATE)
    return document


def sets(spec: Factor) -> tuple[str, ...]:
    """Return the dotted keys that any level of a factor sets."""
    if isinstance(spec, KeyFactor):
        return (spec.sets,)
    return tuple(dict.fromkeys(key for patch in spec.levels.values() for key in patch))


def varies(spec: Factor) -> tuple[str, ...]:
    """Return the dotted keys in which arms with different levels of a factor are meant to differ."""
    if isinstance(spec, KeyFactor):
        return (plain(spec.sets),)
    if spec.sets is not None:
        return tuple(plain(key) for key in spec.sets)
    return tuple(key for key in map(plain, sets(spec)) if key.startswith(_VARIED_UNNAMED))


def arms(document: Document, file: StudyFile) -> tuple[NamedLevels, ...]:
    """Return the arms in order: those that the file names, or the product of all levels minus the excluded."""
    names = level_names(document, file)
    named = _explicit(document, file, names) if file.arms is not None else _product(document, file, names)
    if len(named) < 2:
        where: KeyPath = ("arms",) if file.arms is not None else ("exclude",) if file.exclude else ("factors",)
        raise document.error(where, "fewer than two arms: nothing to compare", hint="add a level or an arm")
    _refuse_unused(document, file, names, named)
    return named


def resolved(document: Document, where: KeyPath, refs: LevelRefs, names: Mapping[str, Sequence[str]]) -> Levels:
    """Check a reference at `where`: factor → level name, with every factor and level known."""
    levels: dict[str, str] = {}
    for factor, value in refs.items():
        if factor not in names:
            hint = did_you_mean(factor, names, kind="factors")
            raise document.error((*where, factor), f"there is no factor {factor!r}", hint=hint)
        level = level_name(value)
        if level not in names[factor]:
            hint = did_you_mean(level, names[factor], kind="levels")
            raise document.error((*where, factor), f"factor {factor!r} has no level {level!r}", hint=hint)
        levels[factor] = level
    return {factor: levels[factor] for factor in names if factor in levels}


def allowed(document: Document, where: KeyPath, rule: LevelRule, names: Mapping[str, Sequence[str]]) -> Rule:
    """Check a rule at `where`: factor → names of levels, with every factor and level known."""
    levels_of: dict[str, tuple[str, ...]] = {}
    for factor, value in rule.items():
        values = value if isinstance(value, tuple) else (value,)
        refs = [resolved(document, where, {factor: each}, names) for each in values]
        levels_of[factor] = tuple(levels[factor] for levels in refs)
    return levels_of


def fits(rule: Rule, levels: Levels) -> bool:
    """Whether an arm has one of the rule's levels in each factor of the rule."""
    return all(levels[factor] in named for factor, named in rule.items())


def only(
    document: Document,
    where: KeyPath,
    rule: LevelRule | None,
    names: Mapping[str, tuple[str, ...]],
    named: tuple[NamedLevels, ...],
) -> tuple[Mapping[str, tuple[str, ...]], tuple[NamedLevels, ...]]:
    """Return the factors' levels and the arms that a scale keeps: those with the levels that it names."""
    if rule is None:
        return names, named
    kept = allowed(document, where, rule, names)
    arms = tuple(arm for arm in named if fits(kept, arm.levels))
    if len(arms) < 2:
        raise document.error(where, "fewer than two arms are left: nothing to compare", hint="name more levels")
    left = {
        factor: tuple(level for level in levels if any(arm.levels[factor] == level for arm in arms))
        for factor, levels in names.items()
    }
    return left, arms


def whole(document: Document, where: KeyPath, refs: LevelRefs, names: Mapping[str, Sequence[str]]) -> Levels:
    """Check a reference as `resolved` does; every factor must be named."""
    levels = resolved(document, where, refs, names)
    for factor in names:
        if factor not in levels:
            raise document.error(
                where, f"no level of factor {factor!r} is given", hint="name one level of each factor"
            )
    return levels


def _source(factor: str, spec: KeyFactor, level: str) -> KeyPath:
    if isinstance(spec.levels, Mapping):
        return ("factors", factor, "levels", level)
    return ("factors", factor, "levels", [level_name(value) for value in spec.levels].index(level))


def _refuse_unnamed_keys(document: Document, factor: str, spec: Factor) -> None:
    """Refuse a level that sets keys beyond the factor's `sets`: it would hide a second difference."""
    if isinstance(spec, KeyFactor) or spec.sets is None:
        return
    where: KeyPath = ("factors", factor)
    named = [path_of(document, (*where, "sets", n), key) for n, key in enumerate(spec.sets)]
    used: set[KeyPath] = set()
    for level, patch in spec.levels.items():
        for key in patch:
            source: KeyPath = (*where, "levels", level, key)
            path = path_of(document, source, key)
            used.add(path)
            if path not in named:
                hint = f"name {key} in the factor's `sets`, or use the same value in all levels"
                raise document.error(source, f"{key} is not among the keys that {factor!r} sets", hint=hint)
    for n, key in enumerate(spec.sets):
        if named[n] not in used:
            raise document.error((*where, "sets", n), f"no level sets {key}")


def _refuse_common_keys(document: Document, file: StudyFile) -> None:
    """Refuse two factors that set the same key, or nested keys: the order of factors would matter."""
    taken: dict[KeyPath, str] = {}
    for factor, spec in file.factors.items():
        for key in sets(spec):
            path = path_of(document, _written(factor, spec, key), key)
            for other_path, other in taken.items():
                shorter = min(len(path), len(other_path))
                if other != factor and path[:shorter] == other_path[:shorter]:
                    raise document.error(("factors", factor), f"sets {key}, which factor {other!r} sets too")
            taken[path] = factor


def _written(factor: str, spec: Factor, key: str) -> KeyPath:
    """Return where a factor's key is written first."""
    if isinstance(spec, KeyFactor):
        return ("factors", factor, "sets")
    level = next(level for level, patch in spec.levels.items() if key in patch)
    return ("factors", factor, "levels", level, key)


def _product(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]]) -> tuple[NamedLevels, ...]:
    size = prod(len(levels) for levels in names.values())
    if size > _MOST_ARMS:
        hint = "name the arms one by one, or vary less"
        raise document.error(("factors",), f"{size} arms are more than the limit of {_MOST_ARMS}", hint=hint)
    every = [dict(zip(names, levels, strict=True)) for levels in itertools.product(*names.values())]
    left = every
    for n, refs in enumerate(file.exclude):
        rule = allowed(document, ("exclude", n), refs, names)
        kept = [levels for levels in left if not fits(rule, levels)]
        if len(kept) == len(left):
            raise document.error(("exclude", n), "excludes nothing that is not already excluded")
        left = kept
    return tuple(_named(left))


def _explicit(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]]) -> tuple[NamedLevels, ...]:
    if file.exclude:
        raise document.error(("exclude",), "arms are named one by one, so there is nothing to exclude from")
    named: list[NamedLevels] = []
    for n, spec in enumerate(file.arms or ()):
        levels = whole(document, ("arms", n, "levels"), spec.levels, names)
        for other in named:
            if other.name == spec.name:
                raise document.error(("arms", n, "name"), f"the arm {spec.name!r} is listed twice")
            if other.levels == levels:
                raise document.error(("arms", n), f"has the same levels as the arm {other.name!r}")
        named.append(NamedLevels(spec.name, levels, ("arms", n)))
    return tuple(named)


def _named(combinations: Sequence[Levels]) -> Iterator[NamedLevels]:
    """Yield names made of levels only, with a digest if that is ambiguous or too long."""
    short = ["-".join(_part(*item) for item in levels.items()) for levels in combinations]
    for name, levels in zip(short, combinations, strict=True):
        if len(name) > _LONGEST_NAME or short.count(name) > 1:
            digest = hashlib.sha256(json.dumps(levels).encode()).hexdigest()[:8]
            yield NamedLevels(f"{name[: _LONGEST_NAME - 9]}-{digest}", levels)
        else:
            yield NamedLevels(name, levels)


def _part(factor: str, level: str) -> str:
    """Return a level's part of a name: `bridge` explains itself, `25` or `true` needs its factor: `threads-25`."""
    return level if _SELF_TELLING.match(level) else f"{factor}-{level}"


def _refuse_unused(
    document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], named: Sequence[NamedLevels]
) -> None:
    for factor, levels in names.items():
        used = {arm.levels[factor] for arm in named}
        for n, level in enumerate(levels):
            if level not in used:
                spec = file.factors[factor]
                key = level if isinstance(spec.levels, Mapping) else n
                raise document.error(("factors", factor, "levels", key), f"no arm uses the level {level!r}")
