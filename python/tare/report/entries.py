"""JSON entries derived from dataclasses: the same keys as fields, but for what `SHAPES` says."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")


class Entry(BaseModel):
    """Frozen model; every key is always present."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Added:
    """A key that is computed from the whole. `of`: its type."""

    of: Any
    value: Callable[[Any], object]
    meaning: str = ""


@dataclass(frozen=True)
class Shape:
    """How a dataclass is written."""

    inline: tuple[str, ...] = ()
    """Fields in whose place their own fields are written."""
    without: tuple[str, ...] = ()
    """Fields, of inlined ones too, that are not written."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """Field, of inlined ones too → key."""
    added: Mapping[str, Added] = field(default_factory=dict)
    """Further keys."""

    def of(self, keys: Mapping[str, T]) -> dict[str, T]:
        """Leave out and rename keys."""
        return {self.rename.get(key, key): each for key, each in keys.items() if key not in self.without}


class Entries:
    """Entries of dataclasses and named tuples, each in its shape; those without one have a key for each field.

    As metadata (`Annotated[Finding, entries]`), a model writes a field that holds such a dataclass as its entry.
    """

    def __init__(self, shapes: Mapping[type, Shape]) -> None:
        self._shapes = shapes
        self._models: dict[type, type[Entry]] = {}

    def tree(self, value: Any) -> Any:
        """Return a value as the JSON file has it."""
        if _has_fields(type(value)):
            shape = self._shape(type(value))
            keys: dict[str, Any] = {}
            for name in get_type_hints(type(value)):
                if name in shape.inline:
                    keys |= self.tree(getattr(value, name))
                elif name not in shape.without:
                    keys[name] = self.tree(getattr(value, name))
            return shape.of(keys) | {key: self.tree(each.value(value)) for key, each in shape.added.items()}
        if isinstance(value, Mapping):
            return {key: self.tree(each) for key, each in value.items()}
        return [self.tree(each) for each in value] if isinstance(value, list | tuple) else value

    def model(self, of: type) -> type[Entry]:
        """Return the model of a dataclass's entries, for validation and for the schema."""
        if of not in self._models:
            keys = self._keys(of).items()
            described: Any = {key: (kind, Field(description=meaning or None)) for key, (kind, meaning) in keys}
            self._models[of] = create_model(of.__name__, __base__=Entry, __doc__=inspect.getdoc(of), **described)
        return self._models[of]

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        model = self.model(source)
        return core_schema.no_info_plain_validator_function(
            lambda value: value,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: model.model_validate(self.tree(value)), return_schema=handler.generate_schema(model)
            ),
        )

    def _shape(self, of: type) -> Shape:
        return self._shapes.get(of, Shape())

    def _keys(self, of: type) -> dict[str, tuple[Any, str]]:
        """Key → its type and meaning."""
        shape, meanings = self._shape(of), meanings_of(of)
        keys: dict[str, tuple[Any, str]] = {}
        for name, hint in get_type_hints(of).items():
            if name in shape.inline:
                keys |= self._keys(hint)
            elif name not in shape.without:
                keys[name] = (self._kind(hint), meanings.get(name, ""))
        return shape.of(keys) | {key: (self._kind(each.of), each.meaning) for key, each in shape.added.items()}

    def _kind(self, hint: Any) -> Any:
        """Replace the dataclasses in a type by their models."""
        if _has_fields(hint):
            return self.model(hint)
        origin, inner = get_origin(hint), get_args(hint)
        if origin not in (tuple, Mapping, Union, UnionType):
            return hint
        kinds = tuple(each if each is Ellipsis else self._kind(each) for each in inner)
        return Union[kinds] if origin in (Union, UnionType) else origin[kinds]  # noqa: UP007 - types known at run time


def _has_fields(of: Any) -> bool:
    """Whether a type is a dataclass or a named tuple."""
    return isinstance(of, type) and (is_dataclass(of) or (issubclass(of, tuple) and hasattr(of, "_fields")))


@cache
def meanings_of(of: type) -> Mapping[str, str]:
    """Field → the docstring beneath it."""
    (tree,) = ast.parse(dedent(inspect.getsource(of))).body
    meanings: dict[str, str] = {}
    for each, following in pairwise(tree.body if isinstance(tree, ast.ClassDef) else ()):
        text = following.value if isinstance(following, ast.Expr) else None
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and isinstance(text, ast.Constant):
            meanings[each.target.id] = inspect.cleandoc(str(text.value))
    return meanings
