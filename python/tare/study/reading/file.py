"""The shape of a study file, before scale and levels have been applied to it.

`sut`, `client`, `workload` and `monitors` form the template that scale and levels patch; only an arm's own patched
copy is complete, and is validated by `SutSpec`, `Placement` and the workload's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tare.study.model import Margin, MarginMetric, MaxOverhead, Name, PublishedMetric, Scalar, Source
from tare.study.protocol_spec import InterleaveSpec, ProtocolSpec
from tare.study.values import MOST, PublishedBy, Quantities, Strict

DEFAULT_SCALE = "full"

Text = Annotated[str, Field(pattern=r"\S")]
"""Prose that is not empty."""
Patch = Mapping[str, Any]
"""Dotted key → value that replaces the template's: `{sut.network: bridge}`."""
LevelRefs = Annotated[Mapping[str, Scalar], Field(min_length=1)]
"""Factor → name of one of its levels."""


def _one_or_more(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


LevelRule = Annotated[
    Mapping[
        str,
        Annotated[
            Annotated[Scalar, Tag("one")]
            | Annotated[Annotated[tuple[Scalar, ...], Field(min_length=1)], Tag("several")],
            Discriminator(_one_or_more),
        ],
    ],
    Field(min_length=1),
]
"""Factor → one or several of its levels: the combinations that have one of these in each factor."""


def _written_as(value: Any) -> str:
    return "list" if isinstance(value, list | tuple) else "map"


class PatchFactor(Strict):
    """A factor whose levels are patches of several keys."""

    sets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Dotted keys that levels may set. By default, deployments, networks and the workload are what varies; any
    other difference between arms is refused when it is observed."""
    levels: Annotated[Mapping[Name, Patch], Field(min_length=1)]


class KeyFactor(Strict):
    """A factor that varies one key. A value whose text is no plain name needs `levels: {NAME: VALUE}`."""

    sets: str
    """The dotted key that every level sets."""
    levels: Annotated[
        Annotated[tuple[Scalar, ...], Field(min_length=1), Tag("list")]
        | Annotated[Mapping[Name, Scalar], Field(min_length=1), Tag("map")],
        Discriminator(_written_as),
    ]


def _kind(value: Any) -> str:
    one = isinstance(value, Mapping) and not isinstance(value.get("sets", []), list | tuple | None)
    return "key" if one or isinstance(value, KeyFactor) else "patch"


Factor = Annotated[
    Annotated[KeyFactor, Tag("key")] | Annotated[PatchFactor, Tag("patch")],
    Discriminator(_kind),
]


class ArmSpec(Strict):
    """One arm, named by hand."""

    name: Name
    levels: LevelRefs


class ScaleSpec(Strict):
    """A size to run the study at: what it sets, and how it deviates from the published study."""

    set: Patch = Field(default_factory=dict)
    only: LevelRule | None = None
    """Levels that run at this size; arms with other levels are left out."""
    deviations: tuple[Text, ...] = ()


class PublishedSpec(Strict):
    """One published figure in a file; see `Published`. A list: levels that the source does not separate."""

    levels: LevelRule
    metric: PublishedMetric
    value: float | None = Field(default=None, gt=0, le=MOST)
    unit: Text | None = None
    relative: float | None = Field(default=None, gt=-1, le=MOST)
    where: Text


class SourceSpec(Source):
    """A publication as a file names it; stores from before these bounds keep theirs."""

    title: Text
    authors: Text
    year: int = Field(ge=1900, le=2200)
    url: str = Field(pattern=r"^https?://\S+$")

    def publication(self) -> Source:
        """Convert to the form of plans and stores."""
        return Source(title=self.title, authors=self.authors, year=self.year, url=self.url)


class StudyFile(Strict):
    """A study file of format 1."""

    format: Literal[1]
    name: Name
    question: Text
    source: SourceSpec | None = None
    sut: Mapping[str, Any]
    client: Mapping[str, Any] | None = None
    workload: Mapping[str, Any]
    monitors: Mapping[str, Any] = Field(default_factory=dict)
    protocol: ProtocolSpec = InterleaveSpec()
    factors: Annotated[Mapping[Name, Factor], Field(min_length=1)]
    exclude: tuple[LevelRule, ...] = ()
    conditions: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()
    stages: str | None = None
    published_by: PublishedBy | None = None
    disk_bound: LevelRule | None = None
    arms: tuple[ArmSpec, ...] | None = None
    baseline: Annotated[
        Annotated[str, Tag("name")] | Annotated[LevelRefs, Tag("levels")],
        Discriminator(lambda value: "levels" if isinstance(value, Mapping) else "name"),
    ]
    scales: Mapping[Name, ScaleSpec] = Field(default_factory=dict)
    published: tuple[PublishedSpec, ...] = ()
    quantities: Quantities | None = None
    margins: Annotated[Mapping[MarginMetric, Margin], Field(min_length=1)] | None = None
    max_overhead: Annotated[Mapping[MarginMetric, MaxOverhead], Field(min_length=1)] | None = None
    deviations: tuple[Text, ...] = ()
