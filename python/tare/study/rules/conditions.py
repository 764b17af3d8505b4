"""Conditions: factors whose levels are circumstances of a study and no question of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tare.study.reading.baselines import Baselines
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import Levels
from tare.study.reading.file import StudyFile
from tare.study.suggest import did_you_mean


def check(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], baseline: Baselines) -> None:
    """Raise `StudyError` where a condition or stratum is no such thing, or the baseline is not one of each."""
    _known(document, "conditions", file.conditions, names, "factors")
    _known(document, "strata", file.strata, file.conditions, "conditions")
    if not file.conditions:
        return
    asked = [factor for factor in names if factor not in file.conditions and factor != file.stages]
    if not asked:
        raise document.error(("conditions",), "every factor is a condition: there is nothing to compare")
    if list(baseline.levels) != asked:
        hint = f"baseline: {{{', '.join(f'{factor}: LEVEL' for factor in asked)}}}"
        what = "with conditions the baseline has to name a level of each other factor, and of no condition"
        raise document.error(("baseline",), what, hint=hint)


def of_arm(file: StudyFile, levels: Levels) -> dict[str, str]:
    """Levels without those of conditions."""
    return {factor: level for factor, level in levels.items() if factor not in file.conditions}


def _known(document: Document, key: str, given: Sequence[str], known: Iterable[str], kind: str) -> None:
    names = list(known)
    for n, name in enumerate(given):
        where: KeyPath = (key, n)
        if name not in names:
            hint = did_you_mean(name, names, kind=kind)
            raise document.error(where, f"there is no {kind[:-1]} {name!r}", hint=hint)
        if name in given[:n]:
            raise document.error(where, f"{name!r} is listed twice")
