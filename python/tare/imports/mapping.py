"""Model of a mapping file, which says which files are which runs; see docs/reference/import.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb, prod
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
_MOST_WAYS = 1_000_000
"""They take some 0.2 s."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PathPattern:
    """A pattern with the names of its parts in order. Parts and `*` never contain a slash; `**/` is any folders."""

    text: str
    parts: tuple[str, ...]
    regex: re.Pattern[str]
    longest: re.Pattern[str] | None
    """The same pattern with the longest possible first parts; `None` if a `*` makes them ambiguous."""
    between: tuple[str, ...] = ()
    """Texts between two parts or stars; empty where nothing separates them."""

    @classmethod
    def of(cls, text: str) -> PathPattern:
        """Parse a pattern. Raises `ValueError` with what is wrong with it."""
        if text.startswith("/") or ".." in text.split("/"):
            raise ValueError("a path below the directory that is imported, without ..")
        parts: list[str] = []
        literals: list[str] = []
        made, at = "", 0
        for match in _TOKEN.finditer(text):
            made += re.escape(text[at : match.start()])
            literals.append(text[at : match.start()] or ("/" if text[:at].endswith("**/") else ""))
            at = match.end()
            name, star = match.groups()
            if star:
                made += "(?:.*/)?" if star == "**/" else _ANY
                continue
            if not _NAME.fullmatch(name):
                raise ValueError(f"{{{name}}} is no name: letters, digits, dots and hyphens")
            if name in parts:
                raise ValueError(f"the part {{{name}}} occurs twice")
            made += f"(?P<p{len(parts)}>{_PART})"
            parts.append(name)
        rest = text[at:]
        if "{" in rest or "}" in rest or "{" in re.sub(_TOKEN, "", text):
            raise ValueError("unmatched brace")
        regex = made + re.escape(rest)
        longest = None if _ANY in made else re.compile(regex.replace(_PART, _LONGEST_PART))
        return cls(text, tuple(parts), re.compile(regex), longest, tuple(literals[1:]))

    def read(self, path: str) -> Mapping[str, str] | None:
        """Parts of a path below the directory; `None` if the path does not match."""
        return self._read(self.regex, path)

    def _read(self, regex: re.Pattern[str], path: str) -> Mapping[str, str] | None:
        if self._ways(path) > _MOST_WAYS:
            raise StudyError(
                f"{path[:200]} could be read by {self.text[:200]!r} in more than {_MOST_WAYS} ways",
                hint="rename it, or write a pattern with fewer parts and stars",
            )
        match = regex.fullmatch(path)
        return None if match is None else {name: match.group(f"p{n}") for n, name in enumerate(self.parts)}

    def _ways(self, path: str) -> int:
        """Bound of the ways in which the parts may be laid over a path, all of which a match may try."""
        return prod(
            comb(max(times, path.count(text) if text else len(path)), times)
            for text, times in Counter(self.between).items()
        )

    def files(self, directory: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """Yield matching files below the directory, in the order of paths; copies in a store are skipped."""
        if not directory.is_dir():
            raise StudyError(f"{directory} is no directory", hint="name the directory with the results to import")
        everything = sorted(directory.rglob("*"))
        stores = {path.parent for path in everything if path.name == StoreLayout(path.parent).database.name}
        for path in everything:
            fields = self.read(path.relative_to(directory).as_posix())
            if fields is None or not path.is_file() or not stores.isdisjoint(path.parents):
                continue
            if not str(path).isprintable():
                hint = "rename it with printable characters in UTF-8"
                raise StudyError(f"{str(path)!r} cannot be stored under that name", hint=hint)
            if path.is_symlink() and not path.resolve().is_relative_to(directory.resolve()):
                hint = "its content would be copied into the store: put the file itself there, if it is a result"
                raise StudyError(f"{path} is a link that leads out of {directory}", hint=hint)
            self._must_be_one_reading(path.relative_to(directory).as_posix(), fields)
            yield path, fields

    def _must_be_one_reading(self, path: str, fields: Mapping[str, str]) -> None:
        other = fields if self.longest is None else self._read(self.longest, path)
        if other and other != fields:
            part, text = next((name, text) for name, text in fields.items() if other[name] != text)
            raise StudyError(
                f"{path} can be read in two ways: {{{part}}} as {text!r} or as {other[part]!r}",
                hint="a part must not contain the text that separates it from the next one: rename the files",
            )


ANY = "any"
"""Value of a condition whose levels are whatever the files' names contain."""

PER_SECOND = "/s"

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class ToolParser(Strict):
    """Each file is a run, as the generator wrote it. `max_error_share`: acceptable share of failed operations."""

    name: Literal["ycsb", "sysbench", "cassandra-stress"]
    max_error_share: Share = 0.0


class Column(Strict):
    """A column of a table, and its unit."""

    column: Text
    unit: Literal["ns", "us", "ms", "s", "/s"]


class CsvParser(Strict):
    """A table with a heading, where each row is a run. `figures`: metric → column; `parts`: part → column.

    A row with more than 0 in the `errors` column is a failed run. `decimal`: the decimal mark.
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
"""Level → text that stands for it in a name."""


def _written_as(value: Any) -> str:
    return "levels" if isinstance(value, Mapping) else "any"


Condition = Annotated[
    Annotated[Literal["any"], Tag("any")] | Annotated[Levels, Tag("levels")],
    Discriminator(_written_as),
]


class MappingFile(Strict):
    """A mapping file of format 1.

    `files`: path below the directory, with `{part}` for text to read and `*` for text to skip. `factors`: parts in
    which arms differ. `conditions`: parts that are the same in all runs of a block. `repetition`: part that numbers
    runs of the same kind. `ignore`: parts that are not used. Every part must be in one of these keys.
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
