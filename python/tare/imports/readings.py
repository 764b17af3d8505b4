"""Runs of imported files, each at its place: arm, conditions and repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import TypeAlias

from tare.errors import StudyError
from tare.imports.contents import Source
from tare.imports.distorted import distorted
from tare.imports.in_order import in_order
from tare.imports.level_names import level_name
from tare.imports.load import ImportMapping
from tare.imports.mapping import OTHERS, ROW, MappingFile
from tare.imports.reading import ReadRun, read_file
from tare.study.reading.factors import Levels
from tare.study.suggest import did_you_mean

_Fitting: TypeAlias = tuple[Source, Mapping[str, str]]
"""A file that fits a mapping's pattern, and the parts of its name."""


@dataclass(frozen=True)
class Reading:
    """A run that was read. `conditions`: condition → level. `repetition`: numbers runs of equal conditions."""

    source: Source
    arm: str
    conditions: Levels
    repetition: str
    read: ReadRun

    @property
    def name(self) -> str:
        """Path of the file below the directory."""
        return self.source.name


def readings_of(mapping: ImportMapping, directory: Path, left_out: Counter[str]) -> Iterator[Reading]:
    """Yield the runs that the mapping has, and count the others in `left_out`, by the reason why."""
    file = mapping.file
    arms = {tuple(levels.values()): name for name, levels in mapping.arms.items()}
    rows: Counter[tuple[str, ...]] = Counter()
    names = _LevelNames()
    failed: dict[str, str] = {}
    files = mapping.pattern.files(directory)
    for (source, parts), runs in in_order(partial(_read, file), files, here=_is_member):
        for read in runs:
            known = {**parts, **read.parts}
            if reason := _unwanted(known, file):
                left_out[reason] += 1
                continue
            if read.failure is not None and "" in read.parts.values():
                first = failed.setdefault(read.failure, source.name)
                left_out[f"a failed report that lacks its parts, such as {first}: {read.failure}"] += 1
                continue
            _must_agree(read, parts)
            levels = {
                name: names.level(name, known[name], texts, read.place) for name, texts in file.factors.items()
            }
            conditions = {
                name: names.level(name, known[name], texts, read.place) for name, texts in file.conditions.items()
            }
            arm = arms.get(tuple(levels.values()))
            if arm is None:  # a mapping that names its arms leaves out the others
                left_out[
                    "no arm of the mapping: " + ", ".join(f"{name} {each}" for name, each in levels.items())
                ] += 1
                continue
            if by_row(mapping):
                rows[arm, *conditions.values()] += 1
                repetition = str(rows[arm, *conditions.values()])
            else:
                repetition = "1" if file.repetition is None else known[file.repetition]
            told = replace(read, distortions=distorted(read, parts))
            yield Reading(source, arm, conditions, repetition, told)


def _read(file: MappingFile, fitting: _Fitting) -> list[ReadRun]:
    return list(read_file(fitting[0], file, packed=parent_process() is not None))


def _is_member(fitting: _Fitting) -> bool:
    """Whether a file is in an archive, which is open here only."""
    return fitting[0].member is not None


def by_row(mapping: ImportMapping) -> bool:
    """Whether runs of a configuration are numbered as they come."""
    return mapping.file.repetition == ROW and ROW not in mapping.parts


def _unwanted(known: Mapping[str, str], file: MappingFile) -> str | None:
    """Why the mapping leaves out a run; `None` if it does not."""
    for name, texts in file.leave_out.items():
        levels = file.factors.get(name) or file.conditions.get(name)
        of_levels = levels.values() if isinstance(levels, Mapping) else ()
        if known[name] not in of_levels if texts == OTHERS else known[name] in texts:
            return f"{name} {known[name]!r}"
    return None


def _must_agree(read: ReadRun, parts: Mapping[str, str]) -> None:
    """Refuse a report that says another number of itself than its file's name does."""
    for name, text in parts.items():
        said = read.says.get(name, text)
        if said != text and said.isdecimal() and text.isdecimal() and int(said) != int(text):
            raise StudyError(
                f"{read.place}: {name} is {text} by the file's name, but {said} by its report",
                hint=f"call the part otherwise if the name means something else, or read it from the report "
                f"(`parser: {{parts: {{{name}: {name}}}}}`)",
            )


class _LevelNames:
    """Levels that texts stand for. With `any`, a text that is no level's name gets a name made of it."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}

    def level(self, part: str, text: str, texts: Mapping[str, str] | str, place: str) -> str:
        """Level of a text. Raises `StudyError` if the mapping does not have it."""
        if isinstance(texts, str):
            level = level_name(text)
            other = self._texts.setdefault((part, level), text)
            if other != text:
                raise StudyError(
                    f"{place}: {text!r} and {other!r} of {{{part}}} would have the same name, {level!r}",
                    hint=f"give its levels in the mapping: {part}: {{NAME: {text!r}}}",
                )
            return level
        for level, known in texts.items():
            if known == text:
                return level
        meant = did_you_mean(text, texts.values(), kind="texts of its levels")
        hint = f"{meant}; `leave_out: {{{part}: others}}` leaves out all other texts"
        raise StudyError(f"{place}: {text!r} of {{{part}}} is not a level in the mapping", hint=hint)
