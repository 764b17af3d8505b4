"""The text of a guessed mapping, with the reason beside each guess, and what was found in words."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tare.errors import StudyError
from tare.imports.guess.names import Column, Names, has_separator, names_of
from tare.imports.guess.roles import (
    UNNAMED,
    Part,
    Role,
    baseline_of,
    needed,
    nested,
    parts_of,
    repeated,
    said_parts,
)
from tare.imports.guess.shapes import form_of
from tare.imports.guess.survey import FEW_ERRORS, SeenFile, Survey
from tare.imports.guess.table_text import doubts_of, lines_of, sentences_of
from tare.imports.guess.tables import TableForm
from tare.imports.level_names import level_name
from tare.imports.load import TABLE
from tare.imports.parsers import Report
from tare.imports.parsers.registry import PARSERS
from tare.imports.pattern import PathPattern
from tare.imports.reading import MAYBE, UNSAID
from tare.plural import counted
from tare.record.measurement import Measurement

_MOST_SHOWN = 6
_MOST_STRATA = 24


@dataclass(frozen=True)
class Guess:
    """A mapping for the files of a survey. `found`: sentences about what it is made of.

    `doubts`: where nothing says a metric or unit, with what it is taken for; somebody must confirm them.
    """

    name: str
    text: str
    found: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Made:
    """Everything that a mapping is made of. `by_row`: runs are numbered as they come."""

    parser: str
    names: Names
    files: Sequence[SeenFile]
    parts: Sequence[Part]
    said: Sequence[Part]
    baseline: str
    named: bool
    by_row: bool
    form: TableForm | None = None

    def of(self, role: Role) -> list[Part]:
        """Parts of the names that have this role."""
        return [part for part in self.parts if part.role is role]

    @property
    def arms(self) -> dict[tuple[str, ...], str]:
        """Texts of the factors → name of the arm, the baseline first."""
        texts = dict.fromkeys(zip(*(part.values for part in self.of(Role.FACTOR)), strict=True))
        named = {each: "-".join(level_name(text) for text in each) for each in texts}
        return dict(sorted(named.items(), key=lambda each: (each[0][0] != self.baseline, each[1])))


def guess(found: Survey) -> Guess:
    """Guess the mapping of the most frequent kind of report that has arms. Raises `StudyError` if there is none."""
    good = {parser: sum(len(file.good) for file in files) for parser, files in found.by_parser.items()}
    parsers = sorted((parser for parser in good if good[parser]), key=lambda parser: -good[parser])
    made = next((made for parser in parsers if (made := _made(found, parser)) is not None), None)
    if made is None and (form := form_of(found.tables)) is not None:
        made = _made_of_table(form)
    if made is None and not parsers:
        raise _no_report(found)
    if made is None:
        names = [file.name for file in found.by_parser[parsers[0]]]
        raise StudyError(
            f"{counted(len(names), 'file')} of {parsers[0]}, but no part of their names tells arms apart: "
            + ", ".join(names[:_MOST_SHOWN])
            + "".join(f"; not read: {why}" for why in list(found.unread)[:1]),
            hint="put the files of each arm into a folder of its own, or write a mapping: docs/reference/import.md",
        )
    name = level_name(found.directory.resolve().name)
    doubts = () if made.form is None else doubts_of(made.form)
    inside = {file.name for file in made.files}
    rest = [each for each in found.names if each not in inside]
    text = _text(made, name, rest)
    if found.monitors:
        text += (
            f"monitors: {{}}  # {_logs_of(found)}: joined to runs by words of their names, and by their clocks\n"
        )
    return Guess(name, text, tuple(_sentences(found, made)), doubts)


def _made(found: Survey, parser: str) -> _Made | None:
    """What a mapping of a parser's files is made of; `None` if nothing tells arms apart."""
    files = {file.name: file for file in found.by_parser[parser]}
    names = names_of(tuple(files))
    chosen = [files[name] for name in names.names]
    parts = _roles(names, chosen)
    factors = [part for part in parts if part.role is Role.FACTOR]
    if not factors:
        return None
    baseline, named = baseline_of(factors[0].texts)
    arms = list(zip(*(part.values for part in factors), strict=True))
    said = said_parts(chosen, ["-".join(arm) for arm in arms], {part.name: part for part in parts})
    places_of = [part for part in parts if part.role in (Role.FACTOR, Role.CONDITION)]
    places = [tuple(part.values[n] for part in places_of) for n, file in enumerate(chosen) for _ in file.good]
    return _numbered(_Made(parser, names, chosen, parts, needed(said, places), baseline, named, by_row=False))


def _made_of_table(form: TableForm) -> _Made | None:
    """What a mapping of tables is made of."""
    names = list(form.names.names)
    of_runs = [name for name, count in zip(names, form.runs_of, strict=True) for _ in range(count)]
    runs = [SeenFile(name, (Report(Measurement(), None),)) for name in of_runs]
    parts = _with_nested(parts_of(form.columns, runs))
    if form.between is not None and form.between.beside == "run":
        parts[-1] = replace(parts[-1], role=Role.REPETITION, why="columns that are numbered")
    factors = [part for part in parts if part.role is Role.FACTOR]
    if not factors:
        return None
    baseline, named = baseline_of(factors[0].texts)
    return _numbered(_Made(TABLE, form.names, runs, parts, (), baseline, named, by_row=False, form=form))


def _no_report(found: Survey) -> StudyError:
    if not found.names:
        return StudyError(f"there is no file in {found.directory}", hint="name the directory with the results")
    first = [
        *(f"not read: {why}" for why in found.unread),
        *(f"of no known tool: {name}" for name in found.unknown),
    ]
    tables = f", but {counted(len(found.tables), 'table')}: {found.tables[0].name}" if found.tables else ""
    failed = next((report.failure for files in found.by_parser.values() for report in files[0].reports), None)
    return StudyError(
        f"no good report of {', '.join(PARSERS)} in {found.directory}{tables}"
        + (
            f" ({failed})" if failed and not found.tables else f"; {first[0]}" if first and not found.tables else ""
        ),
        hint="a table needs a mapping that names its columns: docs/reference/import.md#tables",
    )


def _roles(names: Names, files: Sequence[SeenFile]) -> list[Part]:
    """Roles of the parts of the names."""
    return _with_nested(parts_of(names.columns, files))


def _with_nested(parts: list[Part]) -> list[Part]:
    """What occurs in one platform only is a factor too: no block could have two arms."""
    platform = next((part for part in parts if part.role is Role.FACTOR), None)
    if platform is None:
        return parts
    return [
        replace(part, role=Role.FACTOR, why="no text of it occurs in two platforms")
        if part.role is Role.CONDITION and nested(part, platform.values)
        else part
        for part in parts
    ]


def _numbered(made: _Made) -> _Made:
    """Number runs as they come where no part numbers them, or where the numbers differ between the arms."""
    factors, conditions, numbers = (made.of(role) for role in (Role.FACTOR, Role.CONDITION, Role.REPETITION))
    for extra in numbers[:-1]:
        made = replace(
            made, parts=[replace(part, role=Role.CONDITION) if part is extra else part for part in made.parts]
        )
        conditions = made.of(Role.CONDITION)
    places: list[tuple[str, ...]] = []
    at = 0
    for n, file in enumerate(made.files):
        for _ in file.good:
            of_file = tuple(part.values[n] for part in (*factors, *conditions, *numbers[-1:]))
            places.append((*of_file, *(part.values[at] for part in made.said)))
            at += 1
    arms = ["-".join(texts) for texts in zip(*(part.values for part in factors), strict=True)]
    cut = any(1 < len(file.reports) > len(file.good) for file in made.files) and not made.said
    if repeated(places) < 2 and not cut and not (numbers and nested(numbers[-1], arms)):
        return made
    parts = [
        replace(part, role=Role.IGNORED, why="runs are numbered as they come") if part in numbers[-1:] else part
        for part in made.parts
    ]
    return replace(made, parts=parts, by_row=True)


def _text(made: _Made, name: str, rest: Sequence[str]) -> str:
    """The mapping. `rest`: names of the files that are not in it."""
    base, *others = made.arms.values()
    pattern, parts = _pattern(made)
    lines = [
        "# Guessed by `tare import` from the names and contents of the files: correct what is wrong.",
        "format: 1",
        f"name: {name}",
        f"question: {_quoted(f'What does {_listed(others)} cost, compared with {base}?')}",
        f"files: {_quoted(pattern)}",
        "parser:",
        f"  name: {made.parser}",
    ]
    if some := sum(file.has_errors for file in made.files):
        lines.append(
            f"  max_error_share: {FEW_ERRORS}  # {counted(some, 'file')} with a few errors: too many to count?"
        )
    if made.form is not None:
        lines += lines_of(made.form, [part.name for part in made.parts])
    if made.said:
        lines.append("  parts:")
    for part in made.said:
        maybe = MAYBE if UNSAID in part.texts else ""
        lines.append(f"    {part.name}: {part.name}{maybe}  # {part.why}: {_listed(part.texts)}")
    return "\n".join([*lines, *_factors(made), *_rest(made, parts), *_others(made, pattern, rest)]) + "\n"


def _others(made: _Made, pattern: str, rest: Sequence[str]) -> list[str]:
    """Lines that leave out files of another kind whose names the pattern fits too."""
    read = PathPattern.of(pattern).read
    listed = [part for part in made.of(Role.CONDITION) if not _is_any(part)]
    levels = {part.name: part.texts for part in [*made.of(Role.FACTOR), *listed]}
    fits = [parts for name in rest if (parts := read(name)) is not None]
    unwanted = [
        name for name, texts in levels.items() if any(parts.get(name, texts[0]) not in texts for parts in fits)
    ]
    return (
        ["leave_out:", *(f"  {name}: others  # files that are no results" for name in unwanted)] if unwanted else []
    )


def _factors(made: _Made) -> list[str]:
    """Lines of the factors, the arms and the baseline."""
    factors, lines = made.of(Role.FACTOR), ["factors:"]
    for part in factors:
        lines.append(f"  {part.name}:  # guess: {part.why}")
        texts = sorted(part.texts, key=lambda each: (each != made.baseline, each))
        lines += [f"    {_quoted(level_name(text))}: {_quoted(text)}" for text in texts]
    if len(factors) > 1:
        lines.append("arms:  # the combinations that occur")
        for texts_of_arm, arm in made.arms.items():
            levels = {part.name: level_name(text) for part, text in zip(factors, texts_of_arm, strict=True)}
            lines.append(f"  - {{name: {_quoted(arm)}, levels: {json.dumps(levels)}}}")
    why = "its name says so" if made.named else "guess: no name says which; this is the first"
    return [*lines, f"baseline: {_quoted(next(iter(made.arms.values())))}  # {why}"]


def _rest(made: _Made, parts: Collection[str]) -> list[str]:
    """Lines of what is not compared."""
    conditions, lines = [*made.of(Role.CONDITION), *made.said], list[str]()
    if conditions:
        lines.append("conditions:  # alike in all runs of a block; move one to factors to compare its levels")
        for part in conditions:
            if _is_any(part):
                lines.append(f"  {part.name}: any  # {part.why}: {_listed(part.texts)}")
            else:  # its texts tell where it ends
                lines.append(f"  {part.name}:  # {part.why}")
                lines += [f"    {_quoted(level_name(text))}: {_quoted(text)}" for text in part.texts]
    if conditions and math.prod(len(part.texts) for part in conditions) <= _MOST_STRATA:
        lines.append(f"strata: [{', '.join(part.name for part in conditions)}]  # a finding for each of them too")
    if made.by_row:
        lines.append("repetition: row  # guess: runs of a configuration are repetitions, numbered as they come")
    elif numbers := made.of(Role.REPETITION):
        lines.append(f"repetition: {numbers[0].name}  # guess: {numbers[0].why}")
    if ignored := [part for part in made.of(Role.IGNORED) if part.name in parts]:
        lines.append("ignore:")
        lines += [f"  - {part.name}  # {part.why}" for part in ignored]
    return lines


def _is_any(part: Part) -> bool:
    """Whether a condition takes every text, as those found do not tell where it ends in a name."""
    same = len({level_name(text) for text in part.texts}) < len(part.texts)
    return bool(part.said) or same or not any(map(has_separator, part.texts))


def _pattern(made: _Made) -> tuple[str, set[str]]:
    """Pattern, and the parts left: ignored ones side by side are one, as they may hold what separates them."""
    parts, pieces = iter(made.parts), list[str]()
    for piece in made.names.pieces:
        if isinstance(piece, Column):
            pieces.append(f"{{{next(parts).name}}}")
        else:
            pieces.append("".join("*" if letter in "{}*" else letter for letter in piece))
    one = rf"\{{({'|'.join(part.name for part in made.of(Role.IGNORED)) or '(?!)'})\}}"
    pattern = re.sub(rf"{one}(?:[^/{{}}*]*{one})+", r"{\1}", "".join(pieces))
    merged = {each for each in pieces if each.startswith("{") and each not in pattern}
    return pattern, {part.name for part in made.parts if f"{{{part.name}}}" not in merged}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(texts: Sequence[str]) -> str:
    """`1 to 64` for numbers, else the texts."""
    if len(texts) > 2 and all(text.isdecimal() for text in texts):
        return f"{min(texts, key=int)} to {max(texts, key=int)}"
    more = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return ", ".join(texts[:_MOST_SHOWN]) + more


def _sentences(found: Survey, made: _Made) -> list[str]:
    if made.form is not None:
        return _sentences_of_table(found, made, made.form)
    good = sum(len(file.good) for file in made.files)
    bad = sum(len(file.reports) for file in made.files) - good
    versions = sorted(
        {report.says["version"] for file in made.files for report in file.good if "version" in report.says}
    )
    tool = " ".join([made.parser, ", ".join(versions)]).strip()
    failed = f", and {counted(bad, 'failed report')}" if bad else ""
    lines = [f"{counted(good, 'report')} of {tool} in {counted(len(made.files), 'file')}{failed}"]
    for part in made.of(Role.FACTOR):
        doubt = f" ({part.why})" if part.why == UNNAMED else ""
        lines.append(f"{part.name} from the files' names: {_listed(part.texts)}{doubt}")
    lines.append(f"baseline: {made.arms[next(iter(made.arms))]}" + ("" if made.named else " (no name says which)"))
    lines += [f"{part.name} from the files' names: {_listed(part.texts)}" for part in made.of(Role.CONDITION)]
    lines += [f"{part.name} from the reports: {_listed(part.texts)}" for part in made.said]
    if made.by_row:
        lines.append("repetitions: runs of a configuration, numbered as they come")
    elif numbers := made.of(Role.REPETITION):
        lines.append(f"{counted(len(numbers[0].texts), 'repetition')} from the files' names")
    lines += [f"ignored in the files' names: {part.name} ({part.why})" for part in made.of(Role.IGNORED)]
    if some := sum(file.has_errors for file in made.files):
        lines.append(f"{counted(some, 'file')} with up to {FEW_ERRORS:.0%} of errors: taken, and named in reports")
    return [*lines, *_differing(made), *_left(found, made)]


def _sentences_of_table(found: Survey, made: _Made, form: TableForm) -> list[str]:
    wheres = ["the files' names" for _ in form.names.columns]
    wheres += [f"the column {heading!r}" if heading else "the headings" for heading in form.inside]
    lines = [f"{counted(len(made.files), 'run')} in {counted(len(form.names.names), 'table')}", *sentences_of(form)]
    for part, where in zip(made.parts, wheres, strict=True):
        use = "ignored" if part.role is Role.IGNORED else part.role.value
        doubt = f" ({part.why})" if part.why == UNNAMED else ""
        lines.append(f"{use} {part.name} from {where}: {_listed(part.texts)}{doubt}")
    lines.append(f"baseline: {made.arms[next(iter(made.arms))]}" + ("" if made.named else " (no name says which)"))
    if made.by_row:
        lines.append("repetitions: runs of a configuration, numbered as they come")
    others = len(found.tables) - len(form.names.names)
    return [*lines, *([f"left out: {counted(others, 'table')} of another form"] if others else [])]


def _differing(made: _Made) -> list[str]:
    """What the reports say alike within each arm, and differently between them: no condition can pair that."""
    named = made.arms
    arms = [named[texts] for texts in zip(*(part.values for part in made.of(Role.FACTOR)), strict=True)]
    by_name: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for arm, file in zip(arms, made.files, strict=True):
        for report in file.good:
            for name, text in report.says.items():
                by_name[name][arm].add(text)
    conditions = {part.name for part in (*made.parts, *made.said)}
    lines = []
    for name, texts in by_name.items():
        if name not in conditions and len(texts) > 1 and len({frozenset(each) for each in texts.values()}) > 1:
            each = "; ".join(f"{arm} {_listed(sorted(values))}" for arm, values in texts.items())
            lines.append(f"the arms differ in {name}: {each}")
    return lines


def _logs_of(found: Survey) -> str:
    """Monitors and how many logs each has, in words."""
    return ", ".join(f"{counted(len(names), 'log')} of {tool}" for tool, names in found.monitors.items())


def _left(found: Survey, made: _Made) -> list[str]:
    lines = [f"beside them: {_logs_of(found)}"] if found.monitors else []
    if made.names.others:
        lines.append(
            f"left out: {counted(len(made.names.others), 'file')} whose names have another form, such as "
            f"{made.names.others[0]}"
        )
    for parser, files in found.by_parser.items():
        if parser != made.parser:
            lines.append(
                f"left out: {counted(len(files), 'file')} of {parser}, such as {files[0].name}: import their folder"
            )
    if found.tables:
        lines.append(f"left out: {counted(len(found.tables), 'table')}, such as {found.tables[0].name}")
    if found.unknown:
        lines.append(
            f"left out: {counted(len(found.unknown), 'file')} of no known tool, such as {found.unknown[0]}"
        )
    lines += [f"not read: {why}" for why in list(found.unread)[:_MOST_SHOWN]]
    return lines
