"""Reading and checking of a mapping file; errors name the line."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.imports.mapping import ANY, OTHERS, PER_SECOND, ROW, Column, CsvParser, MappingFile
from tare.imports.parsers.registry import PARSERS
from tare.imports.pattern import PathPattern
from tare.study.model import Published
from tare.study.reading.baselines import combinations_of
from tare.study.reading.document import Document, KeyPath, Sort, read
from tare.study.reading.factors import Levels, whole
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean

TABLE = "csv"
THROUGHPUT = "throughput"
_MOST_ARMS = 1000
_SORT = Sort(
    "a mapping file",
    "docs/reference/import.md has an example",
    "name the mapping file, then the directory with the results",
)


@dataclass(frozen=True)
class ImportMapping:
    """A mapping file with its parsed pattern and its arms. `arms`: name → level of each factor, in order.

    `parts`: every part that is read. `primary`: the metric that the report answers by.
    """

    document: Document
    file: MappingFile
    pattern: PathPattern
    arms: Mapping[str, Levels]
    parts: tuple[str, ...] = ()
    primary: str = THROUGHPUT


def load_mapping(path: Path) -> ImportMapping:
    """Read the mapping file at `path`. Raises `StudyError` naming file, line, column and key path."""
    return resolve(read(path, _SORT))


def resolve(document: Document) -> ImportMapping:
    """Check a document and make its mapping. Raises `StudyError`."""
    given = document.tree.get("format")
    if isinstance(given, int) and given > 1:
        hint = "this tare reads format 1: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    _check_parser(document)
    file = checked(MappingFile, document)
    try:
        pattern = PathPattern.of(file.files)
    except ValueError as error:
        raise document.error(("files",), str(error)) from error
    if isinstance(file.parser, CsvParser):
        _check_figures(document, file.parser)
    _check_parts(document, file, pattern)
    _check_left_out(document, file, (*pattern.parts, *_parts_inside(file)))
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
    parts = (*pattern.parts, *_parts_inside(file))
    return ImportMapping(
        document, file, pattern.deciding_by(_declared(file)), arms, parts, _primary(document, file)
    )


def _declared(file: MappingFile) -> dict[str, tuple[str, ...]]:
    """Part → texts of its levels, which decide between readings of a name."""
    return {
        name: tuple(levels.values())
        for name, levels in {**file.conditions, **file.factors}.items()
        if isinstance(levels, Mapping)
    }


def _primary(document: Document, file: MappingFile) -> str:
    """The metric that the report answers by: named, or throughput, or the only metric of a table."""
    metrics = file.parser.metrics if isinstance(file.parser, CsvParser) else ()
    if file.primary is not None:
        if metrics and file.primary not in metrics:
            hint = did_you_mean(file.primary, metrics, kind="metrics of the table")
            raise document.error(("primary",), f"the table has no {file.primary}", hint=hint)
        return file.primary
    if not metrics or THROUGHPUT in metrics:
        return THROUGHPUT
    if len(metrics) > 1:
        hint = f"name it, such as `primary: {metrics[0]}`"
        raise document.error(("parser",), "without throughput, the report needs a metric to answer by", hint=hint)
    return metrics[0]


def _check_parser(document: Document) -> None:
    """Refuse an unknown parser with all that there are: a table in CSV is read of any tool."""
    parser = document.tree.get("parser")
    name = parser.get("name") if isinstance(parser, Mapping) else None
    if isinstance(name, str) and name not in (TABLE, *PARSERS):
        hint = f"known: {', '.join(sorted(PARSERS))}, and {TABLE} for the table of any tool"
        raise document.error(("parser", "name"), f"unknown value {name!r}", hint=hint)


def _check_figures(document: Document, parser: CsvParser) -> None:
    """Refuse a table without one form of figures, and figures in wrong units."""
    where: KeyPath = ("parser",)
    forms = [bool(parser.figures), parser.wide is not None, parser.tidy is not None]
    if sum(forms) != 1:
        hint = "a row for each run: figures; a column for each level: wide; a row for each metric: tidy"
        what = "no column contains a figure" if not any(forms) else "figures, wide and tidy exclude each other"
        raise document.error(where, what, hint=hint)
    units: list[tuple[KeyPath, str, str]] = [
        ((*where, "figures", metric, "unit"), metric, column.unit)
        for metric, column in parser.figures.items()
        if isinstance(column, Column)
    ]
    if parser.wide is not None:
        units.append(((*where, "wide", "unit"), parser.wide.metric, parser.wide.unit))
    if parser.tidy is not None:
        units += [
            ((*where, "tidy", "metrics", metric), metric, each.unit) for metric, each in parser.tidy.metrics.items()
        ]
    for at, metric, unit in units:
        if (unit == PER_SECOND) != (metric == THROUGHPUT):
            raise document.error(
                at, f"{metric} cannot be in {unit}", hint="throughput: /s; latencies: ns, us, ms or s"
            )
    for metric, column in parser.figures.items():
        if not isinstance(column, Column) and metric != THROUGHPUT:
            raise document.error((*where, "figures", metric), f"{metric} is no quotient of a count and a duration")


def _parts_inside(file: MappingFile) -> tuple[str, ...]:
    """Parts that are read from the files' content."""
    wide = file.parser.wide if isinstance(file.parser, CsvParser) else None
    return (*file.parser.parts, *(() if wide is None else (wide.part,)))


def _check_parts(document: Document, file: MappingFile, pattern: PathPattern) -> None:
    """Refuse parts of names that are read and not used, used and not read, or used twice."""
    columns = _parts_inside(file)
    for name in columns:
        if name in pattern.parts:
            where: KeyPath = ("parser", "parts", name)
            raise document.error(where, f"the part {name!r} is in the files' names too")
    read_parts = (*pattern.parts, *columns)
    used: dict[str, KeyPath] = {}
    for name, where in _uses(file):
        if name == ROW and where == ("repetition",) and name not in read_parts:
            continue
        if name in used:
            raise document.error(where, f"the part {name!r} is used twice: {used[name][0]} has it too")
        if name not in read_parts:
            hint = did_you_mean(name, read_parts, kind="parts")
            raise document.error(where, f"no part {{{name}}} is read from the files", hint=hint)
        used[name] = where
    for name in read_parts:
        if name not in used and name not in file.leave_out:
            hint = "name it under factors, conditions, repetition or ignore"
            raise document.error(("files",), f"the part {{{name}}} is not used", hint=hint)


def _check_left_out(document: Document, file: MappingFile, read_parts: tuple[str, ...]) -> None:
    for name, texts in file.leave_out.items():
        if name not in read_parts:
            hint = did_you_mean(name, read_parts, kind="parts")
            raise document.error(("leave_out", name), f"no part {{{name}}} is read from the files", hint=hint)
        if texts == OTHERS and not isinstance(file.factors.get(name) or file.conditions.get(name), Mapping):
            raise document.error(
                ("leave_out", name), f"{{{name}}} has no levels of which the others could be left out"
            )


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
