"""Rules for levels: as conditions, by the network that they name, as disk-bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tare.study.model import ArmSettings, Study
from tare.study.reading.baselines import Baselines
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import NamedLevels, Rule, allowed, fits, sets
from tare.study.reading.file import StudyFile
from tare.study.suggest import did_you_mean
from tare.study.values import NetworkKind

_WORDS = frozenset(NetworkKind)


def check_conditions(
    document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], baseline: Baselines
) -> None:
    """Raise `StudyError` for an invalid condition or stratum, or a baseline that does not name other factors."""
    _refuse_unknown(document, "conditions", file.conditions, names, "factors")
    _refuse_unknown(document, "strata", file.strata, file.conditions, "conditions")
    if not file.conditions:
        return
    asked = [factor for factor in names if factor not in file.conditions and factor != file.stages]
    if not asked:
        raise document.error(("conditions",), "every factor is a condition: there is nothing to compare")
    if list(baseline.levels) != asked:
        hint = f"baseline: {{{', '.join(f'{factor}: LEVEL' for factor in asked)}}}"
        what = "in a study with conditions, the baseline must name one level of every other factor and no condition"
        raise document.error(("baseline",), what, hint=hint)


def _refuse_unknown(document: Document, key: str, given: Sequence[str], known: Iterable[str], kind: str) -> None:
    names = list(known)
    for n, name in enumerate(given):
        where: KeyPath = (key, n)
        if name not in names:
            hint = did_you_mean(name, names, kind=kind)
            raise document.error(where, f"there is no {kind[:-1]} {name!r}", hint=hint)
        if name in given[:n]:
            raise document.error(where, f"{name!r} is listed twice")


@dataclass(frozen=True)
class _Wrong:
    what: str
    hint: str


def check_path_names(document: Document, file: StudyFile, arm: NamedLevels, settings: ArmSettings) -> None:
    """Raise `StudyError` if the arm, or one of its levels, is named after a network that it does not use."""
    for factor, level in arm.levels.items():
        spec = file.factors[factor]
        key: KeyPath = (level,) if isinstance(spec.levels, Mapping) else ()
        where = ("factors", factor, "levels", *key)
        if wrong := _other_network(level, _side(level, sets(spec)), settings):
            raise document.error(where, f"the level {level!r} {wrong.what}", hint=wrong.hint)
    if arm.path and (wrong := _other_network(arm.name, _side(arm.name, ()), settings)):
        raise document.error((*arm.path, "name"), f"the arm {arm.name!r} {wrong.what}", hint=wrong.hint)


def _side(word: str, keys: tuple[str, ...]) -> str:
    """Return the side that a network's name stands for: the client for `shared`, or if only its network varies."""
    client_only = "client.network" in keys and "sut.network" not in keys
    return "client" if word == NetworkKind.SHARED or client_only else "sut"


def _other_network(word: str, side: str, settings: ArmSettings) -> _Wrong | None:
    placed = settings.client if side == "client" else settings.sut
    if word not in _WORDS or (placed is not None and placed.network == word):
        return None
    if placed is None:
        return _Wrong("names the client's network, but the study has no client", "give it another name")
    hint = f"set {side}.network: {word}, or give it another name"
    return _Wrong(f"has {side}.network: {placed.network.value}", hint)


def disk_bound_levels(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]]) -> Rule:
    """Factor → levels. Raises `StudyError` for an unknown factor or level, and for a condition.

    Reports show arms that differ in conditions only as one, which then has no level of these.
    """
    where = ("disk_bound",)
    if file.disk_bound is None:
        return {}
    chosen = allowed(document, where, file.disk_bound, names)
    for factor in chosen:
        if factor in file.conditions:
            what = f"{factor!r} is a condition, not a question of the study"
            raise document.error((*where, factor), what, hint="name levels of the other factors")
    return chosen


def is_disk_bound(study: Study, name: str) -> bool:
    """Whether the study expects the disk to limit the rate of an arm."""
    levels = next(arm.levels for arm in study.arms if arm.name == name)
    return bool(study.disk_bound) and fits(study.disk_bound, levels)
