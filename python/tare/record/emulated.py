"""Marks for results of emulated CPUs. Only this module decides about them.

The cost of emulation is not the cost on a machine, so such a result is never shown or compared without its mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tare.record.observation import Side
from tare.record.run_record import RunRecord
from tare.study.model import Study

EmulatedArms = Mapping[str, tuple[Side, ...]]
"""Arm → its sides that ran on an emulated CPU in any run; other arms are missing."""

SIDES: tuple[Side, ...] = ("sut", "client")
WORDS: Mapping[Side, str] = {"sut": "SUT", "client": "client"}
MARK = "(emulated)"
BASELINE_MARK = "(baseline emulated)"


def union_of_sides(known: Iterable[Side], more: Iterable[Side]) -> tuple[Side, ...]:
    """Return the sides in either argument, each once, in the order that records use."""
    either = {*known, *more}
    return tuple(side for side in SIDES if side in either)


def emulated_arms(records: Iterable[RunRecord]) -> EmulatedArms:
    """Return the emulated arms of these records; one emulated run marks its arm."""
    emulated: dict[str, tuple[Side, ...]] = {}
    for record in records:
        if record.emulated:
            emulated[record.arm] = union_of_sides(emulated.get(record.arm, ()), record.emulated)
    return emulated


def marked(name: str, mark: str | None) -> str:
    """Put the mark in front of a name, where shortening a long name does not cut it off."""
    return name if mark is None else f"{mark} {name}"


def mark_of(study: Study, arms: EmulatedArms, name: str) -> str | None:
    """Return the mark of an arm: its own, or else that of the baseline it is compared with."""
    if name in arms:
        return MARK
    return BASELINE_MARK if study.baseline_of(name) in arms else None


def shown_names(study: Study, arms: EmulatedArms) -> Mapping[str, str]:
    """Arm → the name to show, with its mark."""
    return made_unique({arm.name: marked(arm.name, mark_of(study, arms, arm.name)) for arm in study.arms})


def made_unique(names: Mapping[str, str]) -> Mapping[str, str]:
    """Make shown names unique: an arm's own name may equal another's name with its mark."""
    kept: dict[str, str] = {}
    for name, shown in sorted(names.items(), key=lambda pair: pair[0] != pair[1]):
        while shown in kept.values():
            shown += "'"  # noqa: PLW2901 - until it is free
        kept[name] = shown
    return {name: kept[name] for name in names}


def with_marks(study: Study, records: Sequence[RunRecord]) -> tuple[Study, tuple[RunRecord, ...]]:
    """Return study and records with the arms' names marked; unchanged if nothing was emulated."""
    arms = emulated_arms(records)
    return renamed(study, records, shown_names(study, arms)) if arms else (study, tuple(records))


def renamed(
    study: Study, records: Sequence[RunRecord], names: Mapping[str, str]
) -> tuple[Study, tuple[RunRecord, ...]]:
    """Return study and records with other names for the arms."""
    arms = tuple(arm.model_copy(update={"name": names[arm.name]}) for arm in study.arms)
    return study.model_copy(update={"arms": arms, "baseline": names.get(study.baseline, study.baseline)}), tuple(
        record.model_copy(update={"arm": names.get(record.arm, record.arm)}) for record in records
    )


def sides_of(arms: EmulatedArms) -> tuple[Side, ...]:
    """Return the emulated sides of any arm."""
    return union_of_sides((), (side for sides in arms.values() for side in sides))


def sides_text(sides: Iterable[Side]) -> str:
    """`SUT and client`."""
    return " and ".join(WORDS[side] for side in sides)
