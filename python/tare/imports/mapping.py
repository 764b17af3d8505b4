"""The shape of a mapping file: which files of others' results are which runs. docs/reference/import.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tare.study.model import Margin, MarginMetric, Name, PublishedMetric, Source
from tare.study.quantities import PublishedBy
from tare.study.reading.file import ArmSpec, PublishedSpec, Text
from tare.study.values import Strict

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
    source: Source | None = None
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
