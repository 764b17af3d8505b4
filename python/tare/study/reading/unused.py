"""What a study file contains and no run uses: levels that every scale omits, values that every level replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tare.errors import StudyError
from tare.study.model import Study
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import NamedLevels
from tare.study.reading.file import StudyFile
from tare.study.reading.patches import TEMPLATE


@dataclass(frozen=True)
class AtScale:
    """A study at one scale. `every`: its arms before `only`; `whole`: the documents of the arms that run."""

    study: Study
    document: Document
    file: StudyFile
    every: Sequence[NamedLevels]
    whole: Sequence[Document]


ArmCheck = Callable[[AtScale, NamedLevels], None]
"""Raises `StudyError` for an arm that cannot run."""


def check_unused_levels(scales: Sequence[AtScale], check: ArmCheck) -> None:
    """Raise for a level that no scale keeps and that no arm could run with.

    One arm that could run is enough: a scale may omit an arm because two levels are incompatible.
    """
    used = {(factor, level) for scale in scales for arm in scale.study.arms for factor, level in arm.levels.items()}
    levels = dict.fromkeys(pair for scale in scales for arm in scale.every for pair in arm.levels.items())
    for level in levels:
        if level not in used and (refusal := _refusal(level, scales, check)) is not None:
            raise refusal


def _refusal(level: tuple[str, str], scales: Sequence[AtScale], check: ArmCheck) -> StudyError | None:
    """Return why the first arm with this level is refused; `None` if one can run."""
    first: StudyError | None = None
    for scale in scales:
        for arm in scale.every:
            if level not in arm.levels.items():
                continue
            try:
                check(scale, arm)
            except StudyError as error:
                first = first or error
            else:
                return None
    return first


def idle_values(document: Document, scales: Sequence[AtScale]) -> Iterator[tuple[KeyPath, Document]]:
    """Yield the key of each template value that no arm keeps, with an arm's document in which it is restored."""
    wholes = [whole for scale in scales for whole in scale.whole]
    used = {origin.path for whole in wholes for key, origin in whole.origins.items() if key and key[0] in TEMPLATE}
    for key in document.origins:
        if len(key) > 1 and key[0] in TEMPLATE and key not in used and key[:-1] in used:
            yield key, wholes[0].restored(key, document)
