"""The shape of a mapping file: which files of others' results are which runs. docs/reference/import.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tare.errors import StudyError
from tare.store.files import StoreLayout
from tare.study.model import Margin, MarginMetric, Name, PublishedMetric
from tare.study.reading.file import ArmSpec, PublishedSpec, SourceSpec, Text
from tare.study.values import PublishedBy, Strict

_TOKEN = re.compile(r"\{([^{}]*)\}|(\*\*/|\*)")
_ANY, _PART, _LONGEST_PART = "[^/]*", "[^/]+?", "[^/]+"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PathPattern:
    """A pattern with the names of its parts in order; a part and `*` never hold a slash, `**/` is any folders."""

    text: str
    parts: tuple[str, ...]
    regex: re.Pattern[str]
    longest: re.Pattern[str] | None
    """The same with the first parts as long as they can be; `None` where a `*` leaves it open."""

    @classmethod
    def of(cls, text: str) -> PathPattern:
        """Read a pattern. Raises `ValueError` that says what is wrong with it."""
        if text.startswith("/") or ".." in text.split("/"):
            raise ValueError("a path below the directory that is imported, without ..")
        parts: list[str] = []
        made, at = "", 0
        for match in _TOKEN.finditer(text):
            made += re.escape(text[at : match.start()])
            at = match.end()
            name, star = match.groups()
            if star:
                made += "(?:.*/)?" if star == "**/" else _ANY
                continue
            if not _NAME.fullmatch(name):
                raise ValueError(f"{{{name}}} is no name: letters, digits, dots and hyphens")
            if name in parts:
                raise ValueError(f"the part {{{name}}} stands in it twice")
            made += f"(?P<p{len(parts)}>{_PART})"
            parts.append(name)
        rest = text[at:]
        if "{" in rest or "}" in rest or "{" in re.sub(_TOKEN, "", text):
            raise ValueError("a brace without its partner")
        regex = made + re.escape(rest)
        longest = None if _ANY in made else re.compile(regex.replace(_PART, _LONGEST_PART))
        return cls(text, tuple(parts), re.compile(regex), longest)

    def read(self, path: str) -> Mapping[str, str] | None:
        """The parts of a path below the directory, `None` where it does not fit."""
        return self._read(self.regex, path)

    def _read(self, regex: re.Pattern[str], path: str) -> Mapping[str, str] | None:
        match = regex.fullmatch(path)
        return None if match is None else {name: match.group(f"p{n}") for n, name in enumerate(self.parts)}

    def files(self, directory: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """Every file below the directory that fits, in the order of their paths; what lies in a store is a copy."""
        if not directory.is_dir():
            raise StudyError(f"{directory} is no directory", hint="name the directory with the results to import")
        everything = sorted(directory.rglob("*"))
        stores = {path.parent for path in everything if path.name == StoreLayout(path.parent).database.name}
        for path in everything:
            fields = self.read(path.relative_to(directory).as_posix())
            if fields is None or not path.is_file() or not stores.isdisjoint(path.parents):
                continue
            if not str(path).isprintable():
                hint = "give it a name of printable letters in UTF-8"
                raise StudyError(f"{str(path)!r} cannot be kept by that name", hint=hint)
            self._must_be_one_reading(path.relative_to(directory).as_posix(), fields)
            yield path, fields

    def _must_be_one_reading(self, path: str, fields: Mapping[str, str]) -> None:
        other = fields if self.longest is None else self._read(self.longest, path)
        if other and other != fields:
            part, text = next((name, text) for name, text in fields.items() if other[name] != text)
            raise StudyError(
                f"{path} can be read in two ways: {{{part}}} as {text!r} or as {other[part]!r}",
                hint="a part may not hold what parts it from the next one: rename the files",
            )


ANY = "any"
"""Written for a condition whose levels are whatever the files' names hold."""

PER_SECOND = "/s"

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class ToolParser(Strict):
    """A file a run, as the generator wrote it. `max_error_share`: of operations without success, acceptable."""

    name: Literal["ycsb", "sysbench", "cassandra-stress"]
    max_error_share: Share = 0.0


class Column(Strict):
    """A column of a table and the unit it is in."""

    column: Text
    unit: Literal["ns", "us", "ms", "s", "/s"]


class CsvParser(Strict):
    """A table with a heading, a row a run. `figures`: metric → its column; `parts`: part → the column it stands in.

    A row whose `errors` column holds more than 0 is a failed run. `decimal`: what stands before decimals.
    """

    name: Literal["csv"]
    figures: Annotated[Mapping[PublishedMetric, Column], Field(min_length=1)]
    parts: Mapping[str, Text] = Field(default_factory=dict)
    errors: Text | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."


def _parser(value: Any) -> str:
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    return "csv" if name == "csv" else "tool"


Parser = Annotated[
    Annotated[ToolParser, Tag("tool")] | Annotated[CsvParser, Tag("csv")],
    Discriminator(_parser),
]

Levels = Annotated[Mapping[Name, Text], Field(min_length=1)]
"""Level → the text that stands for it in a name."""


def _written_as(value: Any) -> str:
    return "levels" if isinstance(value, Mapping) else "any"


Condition = Annotated[
    Annotated[Literal["any"], Tag("any")] | Annotated[Levels, Tag("levels")],
    Discriminator(_written_as),
]


class MappingFile(Strict):
    """A mapping file of format 1.

    `files`: path below the directory, with `{part}` for what is read from it and `*` for what is not looked at.
    `factors`: what arms differ in; `conditions`: what is the same in all runs of a block; `repetition`: the part
    that numbers runs of one kind; `ignore`: parts that are not used. Every part is one of them.
    """

    format: Literal[1]
    name: Name
    question: Text
    source: SourceSpec | None = None
    origin: Text | None = None
    files: Text
    parser: Parser
    factors: Annotated[Mapping[Name, Levels], Field(min_length=1)]
    arms: tuple[ArmSpec, ...] | None = None
    baseline: Name
    conditions: Mapping[Name, Condition] = Field(default_factory=dict)
    repetition: Name | None = None
    ignore: tuple[Name, ...] = ()
    strata: tuple[Name, ...] = ()
    published_by: PublishedBy | None = None
    published: tuple[PublishedSpec, ...] = ()
    margins: Annotated[Mapping[MarginMetric, Margin], Field(min_length=1)] | None = None
    deviations: tuple[Text, ...] = ()
