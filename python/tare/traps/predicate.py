"""Predicates over facts, by which a trap is recognised. Three answers: yes, no, and not known. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Union

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from tare.study.values import Strict, size_bytes

Known = str | int | float | bool | tuple[str, ...]
"""A fact's value. `"none"`: there is no such limit, file or device; comparisons of size with it are false."""
NONE = "none"
Facts = Mapping[str, Known | None]
"""Fact → its value; `None`, or no key: not known."""
Scalar = str | int | float | bool


class Answer(StrEnum):
    """What a predicate says of facts."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class PredicateModel(Strict):
    """Frozen and strict, with the docstrings of its keys in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Condition(PredicateModel):
    """One comparison of a fact. A number may be written as a size (`64M`), or be another fact's name."""

    fact: str
    equals: Scalar | None = None
    one_of: tuple[Scalar, ...] | None = None
    none_of: tuple[Scalar, ...] | None = None
    contains: str | None = None
    """An item of a list, or a part of a text."""
    below: float | int | str | None = None
    above: float | int | str | None = None
    times: float = Field(default=1.0, gt=0)
    """Factor of the number or fact compared with."""

    @model_validator(mode="after")
    def _one_comparison(self) -> Condition:
        given = [self.equals, self.one_of, self.none_of, self.contains, self.below, self.above]
        if sum(each is not None for each in given) != 1:
            raise ValueError("needs one of `equals`, `one_of`, `none_of`, `contains`, `below`, `above`")
        return self

    def facts(self) -> Iterator[str]:
        """Yield the facts that it asks for."""
        yield self.fact
        bound = self.below if self.below is not None else self.above
        if isinstance(bound, str) and _size(bound) is None:
            yield bound

    def ask(self, facts: Facts) -> Answer:
        """Compare."""
        value = facts.get(self.fact)
        if value is None:
            return Answer.UNKNOWN
        if self.equals is not None:
            return _answer(value == self.equals and isinstance(value, bool) is isinstance(self.equals, bool))
        if self.one_of is not None:
            return _answer(value in self.one_of)
        if self.none_of is not None:
            return _answer(value not in self.none_of)
        if self.contains is not None:
            return _answer(isinstance(value, str | tuple) and self.contains in value)
        return self._compare(value, facts)

    def _compare(self, value: Known, facts: Facts) -> Answer:
        bound = self.below if self.below is not None else self.above
        if isinstance(bound, str):
            size = _size(bound)
            if size is None:
                other = facts.get(bound)
                if other is None:
                    return Answer.UNKNOWN
                bound = other if isinstance(other, int | float) else NONE
            else:
                bound = size
        if not isinstance(value, int | float) or not isinstance(bound, int | float):
            return Answer.NO
        limit = bound * self.times
        return _answer(value < limit if self.below is not None else value > limit)


class AllOf(PredicateModel):
    """Every one of them holds."""

    all: tuple[Predicate, ...] = Field(min_length=1)

    def facts(self) -> Iterator[str]:
        """Yield the facts that they ask for."""
        for each in self.all:
            yield from each.facts()

    def ask(self, facts: Facts) -> Answer:
        """No if one says no; else unknown if one is unknown."""
        answers = [each.ask(facts) for each in self.all]
        if Answer.NO in answers:
            return Answer.NO
        return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.YES


class AnyOf(PredicateModel):
    """At least one of them holds."""

    any: tuple[Predicate, ...] = Field(min_length=1)

    def facts(self) -> Iterator[str]:
        """Yield the facts that they ask for."""
        for each in self.any:
            yield from each.facts()

    def ask(self, facts: Facts) -> Answer:
        """Yes if one says yes; else unknown if one is unknown."""
        answers = [each.ask(facts) for each in self.any]
        if Answer.YES in answers:
            return Answer.YES
        return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.NO


def _kind(value: object) -> str:
    keys = value.keys() if isinstance(value, Mapping) else type(value).model_fields  # type: ignore[attr-defined]  # one of the three
    return "all" if "all" in keys else "any" if "any" in keys else "condition"


Predicate = Annotated[
    Union[Annotated[Condition, Tag("condition")], Annotated[AllOf, Tag("all")], Annotated[AnyOf, Tag("any")]],  # noqa: UP007 - a forward reference of pydantic
    Discriminator(_kind),
]
AllOf.model_rebuild()
AnyOf.model_rebuild()


def _answer(holds: bool) -> Answer:  # noqa: FBT001 - the one thing it converts
    return Answer.YES if holds else Answer.NO


def _size(text: str) -> int | None:
    """Bytes of a size such as `64M`; `None` if the text is none, but a fact's name."""
    return size_bytes(text) if text[:-1].isdecimal() and text[-1] in "KMG" else None
