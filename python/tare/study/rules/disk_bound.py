"""Which arms a study means to be bound by the disk, so that a run that was not can be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.study.model import Study
from tare.study.reading.document import Document
from tare.study.reading.factors import Rule, allowed, fits
from tare.study.reading.file import StudyFile


def meant(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]]) -> Rule:
    """Factor → levels. Raises `StudyError` for what is no factor or level, and for a condition.

    Reports tell arms that differ in conditions only as one, which then has no level of these.
    """
    where = ("disk_bound",)
    if file.disk_bound is None:
        return {}
    found = allowed(document, where, file.disk_bound, names)
    for factor in found:
        if factor in file.conditions:
            what = f"{factor!r} is a condition, and no question of the study"
            raise document.error((*where, factor), what, hint="name levels of the other factors")
    return found


def is_disk_bound(study: Study, name: str) -> bool:
    """Whether the study means the disk to set the rate of an arm."""
    levels = next(arm.levels for arm in study.arms if arm.name == name)
    return bool(study.disk_bound) and fits(study.disk_bound, levels)
