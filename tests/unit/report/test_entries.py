"""JSON entries derived from dataclasses: fields in place of others, renamed, left out and added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

import pytest
from pydantic_core import PydanticSerializationError
from tests.unit.report.printed import keys_of

from tare.report.entries import Added, Entries, Entry, Shape


class Colour(StrEnum):
    RED = "red"


class Place(NamedTuple):
    block: int
    point: float


@dataclass(frozen=True)
class Inner:
    low: float | None
    """Lower end."""
    method: str


@dataclass(frozen=True)
class Outer:
    """One thing."""

    name: str
    estimate: Inner
    other: Inner | None
    colour: Colour
    places: tuple[Place, ...]
    by_name: Mapping[str, Inner]
    hidden: int = 7


ENTRIES = Entries(
    {
        Inner: Shape(rename={"method": "estimator"}),
        Outer: Shape(
            inline=("estimate",),
            without=("hidden",),
            rename={"low": "least"},
            added={"twice": Added(int, lambda outer: 2 * outer.hidden, "Two times.")},
        ),
    }
)


class File(Entry):
    outers: tuple[Annotated[Outer, ENTRIES], ...]


def outer(low: float | None = 0.5) -> Outer:
    return Outer("a", Inner(low, "t"), None, Colour.RED, (Place(1, 0.25),), {"x": Inner(None, "z")})


def test_a_dataclass_is_written_in_its_shape() -> None:
    assert File(outers=(outer(),)).model_dump(mode="json") == {
        "outers": [
            {
                "name": "a",
                "least": 0.5,
                "estimator": "t",
                "other": None,
                "colour": "red",
                "places": [{"block": 1, "point": 0.25}],
                "by_name": {"x": {"low": None, "estimator": "z"}},
                "twice": 14,
            }
        ]
    }


def test_the_schema_has_the_same_keys_with_the_meaning_at_each_field() -> None:
    (written,) = File(outers=(outer(),)).model_dump(mode="json")["outers"]
    assert keys_of(File) == {"outers", *written, "low", "block", "point"}
    models = File.model_json_schema(mode="serialization")["$defs"]
    assert models["Outer"]["required"] == list(written)
    assert models["Outer"]["description"] == "One thing."
    assert models["Outer"]["properties"]["least"]["description"] == "Lower end."
    assert models["Outer"]["properties"]["twice"]["description"] == "Two times."
    assert models["Outer"]["additionalProperties"] is False


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(PydanticSerializationError, match="finite number"):
        File(outers=(outer(float("nan")),)).model_dump_json()
