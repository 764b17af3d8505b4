"""Model of a mapping file, which says which files are which runs; see docs/reference/import.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tare.study.model import Margin, MarginMetric, Name, PublishedMetric
from tare.study.reading.file import ArmSpec, PublishedSpec, SourceSpec, Text
from tare.study.values import PublishedBy, Strict

ANY = "any"
"""Value of a condition whose levels are whatever the files' names contain."""

PER_SECOND = "/s"

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class ToolParser(Strict):
    """Each file holds reports of one generator, its `name`, each of which is a run.

    `max_error_share`: acceptable share of failed operations. `parts`: part → what a report says of itself, such as
    `threads`, or `report`, its number in the file; `mode?`: `unsaid` for reports that do not say it.
    """

    name: Literal[
        "ycsb",
        "sysbench",
        "cassandra-stress",
        "pgbench",
        "redis-benchmark",
        "memtier",
        "fio",
        "hammerdb",
        "benchbase",
    ]
    max_error_share: Share = 0.0
    parts: Mapping[str, Text] = Field(default_factory=dict)


Position = Annotated[int, Field(ge=1)]
ColumnName = Text | Position
"""Heading of a column, or its position from 1."""
TimeUnit = Literal["ns", "us", "ms", "s"]


class Column(Strict):
    """A column of a table, and its unit."""

    column: ColumnName
    unit: Literal["ns", "us", "ms", "s", "/s"]


class Quotient(Strict):
    """Throughput from two columns: `count` of operations, and `duration`, the time that they took, in `unit`."""

    count: ColumnName
    duration: ColumnName
    unit: TimeUnit


class Wide(Strict):
    """A table with one of `columns` for each level of `part`. Each cell below is a run's `metric`, in `unit`."""

    part: Name
    columns: Annotated[tuple[Text, ...], Field(min_length=1)]
    metric: PublishedMetric = "throughput"
    unit: Literal["ns", "us", "ms", "s", "/s"] = "/s"


class MetricName(Strict):
    """Text that stands for a metric in a tidy table, and the unit of its values."""

    text: Text
    unit: Literal["ns", "us", "ms", "s", "/s"]


class Tidy(Strict):
    """A table with a row for each metric of a run: its name in column `metric`, its value in column `value`.

    `metrics`: metric → its name there, `text`, and its `unit`. Rows of other metrics are left out.
    """

    metric: ColumnName
    value: ColumnName
    metrics: Annotated[Mapping[PublishedMetric, MetricName], Field(min_length=1)]


class CsvParser(Strict):
    """A table, where each row is a run. `figures`: metric → `column` and `unit`; `parts`: part → column.

    A column is its heading, or its position from 1. Another form of table has `wide` or `tidy` in place of
    `figures`. `headings`: names of the columns of a table without a heading. A row with more than 0 in the `errors`
    column is a failed run. `delimiter`: between columns. `decimal`: the decimal mark.
    """

    name: Literal["csv"]
    figures: Mapping[PublishedMetric, Column | Quotient] = Field(default_factory=dict)
    wide: Wide | None = None
    tidy: Tidy | None = None
    parts: Mapping[str, ColumnName] = Field(default_factory=dict)
    headings: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    errors: ColumnName | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that a run of the table can have."""
        of_tidy = () if self.tidy is None else tuple(self.tidy.metrics)
        return (*self.figures, *of_tidy, *(() if self.wide is None else (self.wide.metric,)))


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


OTHERS = "others"
ROW = "row"


def _left_out(value: Any) -> str:
    return "others" if isinstance(value, str) else "texts"


LeftOut = Annotated[
    Annotated[Literal["others"], Tag("others")] | Annotated[tuple[Text, ...], Field(min_length=1), Tag("texts")],
    Discriminator(_left_out),
]


class MonitorsSpec(Strict):
    """How logs of monitors beside the results belong to runs: `{}` where nothing needs to be said.

    `offset_s`: added to their clocks. `interval_s`: time between samples of logs without times. `cpus`: of the
    machine, for logs that do not say it. `server`, `client`: name of the process or container of each side.
    """

    offset_s: float | None = None
    interval_s: Annotated[float, Field(gt=0.0)] | None = None
    cpus: Position | None = None
    server: Text | None = None
    client: Text | None = None


class MappingFile(Strict):
    """A mapping file of `format` 1, with a `name` and its `question`.

    `files`: path below the directory, with `{part}` for text to read and `*` for text to skip, neither with a
    slash; `**/` is any folders. `parser`: what reads a file. `factors`: parts in which arms differ: part → level →
    its text. `arms`: names for combinations of levels; every combination, unless given. `baseline`: arm to compare
    with. `conditions`: parts that are the same in all runs of a block: part → level → its text, or `any`.
    `repetition`: part that numbers runs of the same kind, or `row`: they are numbered as they come. `ignore`: parts
    that are not used. Every part must be in one of these keys. `leave_out`: part → texts of runs that are left out,
    or `others`: all texts but those of its levels. `strata`: conditions whose levels also get findings. `primary`:
    the metric that reports answer by; throughput, unless the results have none. `margins`: as in a study.
    `monitors`: logs of monitors below the directory are joined to the runs. `source`: the publication. `origin`:
    where the files come from, unless from its `url`. `deviations`: as in a study. `published`: figures of the
    source, `relative` to the baseline. `published_by`: `relative-change-of-averages` or `min-max-mean`.
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
    leave_out: Mapping[Name, LeftOut] = Field(default_factory=dict)
    primary: PublishedMetric | None = None
    strata: tuple[Name, ...] = ()
    published_by: PublishedBy | None = None
    published: tuple[PublishedSpec, ...] = ()
    margins: Annotated[Mapping[MarginMetric, Margin], Field(min_length=1)] | None = None
    deviations: tuple[Text, ...] = ()
    monitors: MonitorsSpec | None = None
