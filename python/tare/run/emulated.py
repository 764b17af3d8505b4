"""Results of an emulated CPU, and the mark that goes with them: the one place that decides, all others ask it.

What emulation costs is not what a machine costs, so such a result is never shown or compared without the mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tare.run.record import RunRecord, Side
from tare.study.model import Study

EmulatedArms = Mapping[str, tuple[Side, ...]]
"""Arm → which of its sides ran on an emulated CPU in any of its runs; others are not in it."""

SIDES: tuple[Side, ...] = ("sut", "client")
WORDS: Mapping[Side, str] = {"sut": "SUT", "client": "client"}
MARK = "(emulated)"
BASELINE_MARK = "(baseline emulated)"


def union_of_sides(known: Iterable[Side], more: Iterable[Side]) -> tuple[Side, ...]:
    """Both, each once, in the order in which records have them."""
    either = {*known, *more}
    return tuple(side for side in SIDES if side in either)


def emulated_arms(records: Iterable[RunRecord]) -> EmulatedArms:
    """One emulated run marks its arm."""
    emulated: dict[str, tuple[Side, ...]] = {}
    for record in records:
        if record.emulated:
            emulated[record.arm] = union_of_sides(emulated.get(record.arm, ()), record.emulated)
    return emulated


def marked(name: str, mark: str | None) -> str:
    """The mark first: what shortens a long name must not cut it off."""
    return name if mark is None else f"{mark} {name}"


def mark_of(study: Study, arms: EmulatedArms, name: str) -> str | None:
    """What is said of an arm wherever it is named: of itself, or else of what it is compared with."""
    if name in arms:
        return MARK
    return BASELINE_MARK if study.baseline_of(name) in arms else None


def shown_names(study: Study, arms: EmulatedArms) -> Mapping[str, str]:
    """Every arm as people are to read it."""
    return apart({arm.name: marked(arm.name, mark_of(study, arms, arm.name)) for arm in study.arms})


def apart(names: Mapping[str, str]) -> Mapping[str, str]:
    """No two alike, although one may be called as another is when it is marked."""
    kept: dict[str, str] = {}
    for name, shown in sorted(names.items(), key=lambda pair: pair[0] != pair[1]):
        while shown in kept.values():
            shown += "'"  # noqa: PLW2901 - until it is free
        kept[name] = shown
    return {name: kept[name] for name in names}


def with_marks(study: Study, records: Sequence[RunRecord]) -> tuple[Study, tuple[RunRecord, ...]]:
    """Both with the arms named as people are to read them; as they are where nothing was emulated."""
    arms = emulated_arms(records)
    return renamed(study, records, shown_names(study, arms)) if arms else (study, tuple(records))


def renamed(
    study: Study, records: Sequence[RunRecord], names: Mapping[str, str]
) -> tuple[Study, tuple[RunRecord, ...]]:
    """Both with other names for the arms."""
    arms = tuple(arm.model_copy(update={"name": names[arm.name]}) for arm in study.arms)
    return study.model_copy(update={"arms": arms, "baseline": names.get(study.baseline, study.baseline)}), tuple(
        record.model_copy(update={"arm": names.get(record.arm, record.arm)}) for record in records
    )


def sides_of(arms: EmulatedArms) -> tuple[Side, ...]:
    """Those of any arm."""
    return union_of_sides((), (side for sides in arms.values() for side in sides))


def sides_text(sides: Iterable[Side]) -> str:
    """`SUT and client`."""
    return " and ".join(WORDS[side] for side in sides)
