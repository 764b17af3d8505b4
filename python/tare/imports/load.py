"""Reading and checking of a mapping file; errors name the line."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.imports.mapping import ANY, PER_SECOND, CsvParser, MappingFile, PathPattern
from tare.study.model import Published
from tare.study.reading.baselines import combinations_of
from tare.study.reading.document import Document, KeyPath, Sort, read
from tare.study.reading.factors import Levels, whole
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean

_MOST_ARMS = 1000
_SORT = Sort(
    "a mapping file",
    "docs/reference/import.md has an example",
    "name the mapping file, then the directory with the results",
)


@dataclass(frozen=True)
class ImportMapping:
    """A mapping file with its parsed pattern and its arms. `arms`: name → level of each factor, in order."""

    document: Document
    file: MappingFile
    pattern: PathPattern
    arms: Mapping[str, Levels]


def load_mapping(path: Path) -> ImportMapping:
    """Read the mapping file at `path`. Raises `StudyError` naming file, line, column and key path."""
    return resolve(read(path, _SORT))


def resolve(document: Document) -> ImportMapping:
    """Check a document and make its mapping. Raises `StudyError`."""
    given = document.tree.get("format")
    if isinstance(given, int) and given > 1:
        hint = "this tare reads format 1: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    file = checked(MappingFile, document)
    try:
        pattern = PathPattern.of(file.files)
    except ValueError as error:
        raise document.error(("files",), str(error)) from error
    if isinstance(file.parser, CsvParser):
        _check_figures(document, file.parser)
    _check_parts(document, file, pattern)
    _check_texts(document, file)
    arms = _arms(document, file)
    if file.baseline not in arms:
        known = did_you_mean(file.baseline, arms, kind="arms")
        raise document.error(("baseline",), f"no arm is called {file.baseline!r}", hint=known)
    for n, stratum in enumerate(file.strata):
        if stratum not in file.conditions:
            meant = did_you_mean(stratum, file.conditions, kind="conditions")
            raise document.error(("strata", n), f"there is no condition {stratum!r}", hint=meant)
    _check_published(document, file)
    return ImportMapping(document, file, pattern, arms)


def _check_figures(document: Document, parser: CsvParser) -> None:
    """Refuse figures in wrong units, and a table without throughput, which shows that a row is a run."""
    where: KeyPath = ("parser", "figures")
    for metric, column in parser.figures.items():
        if (column.unit == PER_SECOND) != (metric == "throughput"):
            hint = "throughput: /s; latencies: ns, us, ms or s"
            raise document.error((*where, metric, "unit"), f"{metric} cannot be in {column.unit}", hint=hint)
    if "throughput" not in parser.figures:
        hint = "give its column; a row without it is a failed run"
        raise document.error(where, "no column contains the throughput", hint=hint)


def _check_parts(document: Document, file: MappingFile, pattern: PathPattern) -> None:
    """Refuse parts of names that are read and not used, used and not read, or used twice."""
    columns = tuple(file.parser.parts) if isinstance(file.parser, CsvParser) else ()
    for name in columns:
        if name in pattern.parts:
            where: KeyPath = ("parser", "parts", name)
            raise document.error(where, f"the part {name!r} is in the files' names too")
    read_parts = (*pattern.parts, *columns)
    used: dict[str, KeyPath] = {}
    for name, where in _uses(file):
        if name in used:
            raise document.error(where, f"the part {name!r} is used twice: {used[name][0]} has it too")
        if name not in read_parts:
            hint = did_you_mean(name, read_parts, kind="parts")
            raise document.error(where, f"no part {{{name}}} is read from the files", hint=hint)
        used[name] = where
    for name in read_parts:
        if name not in used:
            hint = "name it under factors, conditions, repetition or ignore"
            raise document.error(("files",), f"the part {{{name}}} is not used", hint=hint)


def _uses(file: MappingFile) -> list[tuple[str, KeyPath]]:
    repetition: list[tuple[str, KeyPath]] = [] if file.repetition is None else [(file.repetition, ("repetition",))]
    return [
        *((name, ("factors", name)) for name in file.factors),
        *((name, ("conditions", name)) for name in file.conditions),
        *repetition,
        *((name, ("ignore", n)) for n, name in enumerate(file.ignore)),
    ]


def _check_texts(document: Document, file: MappingFile) -> None:
    """Refuse a text that stands for two levels."""
    named = {("conditions", name): levels for name, levels in file.conditions.items() if levels != ANY}
    for (kind, name), levels in {**{("factors", n): each for n, each in file.factors.items()}, **named}.items():
        seen: dict[str, str] = {}
        for level, text in (levels if isinstance(levels, Mapping) else {}).items():
            if text in seen:
                raise document.error((kind, name, level), f"{text!r} is the text of level {seen[text]!r} too")
            seen[text] = level


def _arms(document: Document, file: MappingFile) -> dict[str, Levels]:
    """Arms that the file names, else every combination of the factors' levels."""
    names = {factor: tuple(levels) for factor, levels in file.factors.items()}
    arms: dict[str, Levels] = {}
    if file.arms is None:
        for combination in itertools.islice(itertools.product(*names.values()), _MOST_ARMS + 1):
            arms["-".join(combination)] = dict(zip(names, combination, strict=True))
    for n, spec in enumerate(file.arms or ()):
        levels = whole(document, ("arms", n, "levels"), spec.levels, names)
        if spec.name in arms:
            raise document.error(("arms", n, "name"), f"two arms are called {spec.name!r}")
        if levels in arms.values():
            raise document.error(("arms", n, "levels"), "another arm has these levels")
        arms[spec.name] = levels
    where: KeyPath = ("factors",) if file.arms is None else ("arms",)
    if not 2 <= len(arms) <= _MOST_ARMS:
        raise document.error(where, f"there must be 2 to {_MOST_ARMS} arms, not {len(arms)}")
    return arms


def _check_published(document: Document, file: MappingFile) -> None:
    seen: list[Published] = []
    for n, figure in enumerate(published(document, file)):
        if any(each.levels == figure.levels and each.metric == figure.metric for each in seen):
            raise document.error(("published", n), f"a second {figure.metric} for the same arm and stratum")
        seen.append(figure)


def published(document: Document, file: MappingFile) -> tuple[Published, ...]:
    """Published figures: each of one arm, over all blocks or in one stratum, relative to the baseline.

    A figure with levels of only some strata is about all blocks with these levels.
    """
    names = {factor: tuple(levels) for factor, levels in file.factors.items()}
    figures = []
    for n, spec in enumerate(file.published):
        where: KeyPath = ("published", n, "levels")
        if spec.relative is None:
            raise document.error(("published", n), "no relative figure", hint="give relative, a fraction")
        for refs in combinations_of(spec.levels):
            of_arm = {factor: value for factor, value in refs.items() if factor not in file.strata}
            of_stratum = {factor: str(value) for factor, value in refs.items() if factor in file.strata}
            figures.append(
                Published(
                    levels={**whole(document, where, of_arm, names), **of_stratum},
                    metric=spec.metric,
                    value=spec.value,
                    unit=spec.unit,
                    relative=spec.relative,
                    where=spec.where,
                )
            )
    return tuple(figures)
