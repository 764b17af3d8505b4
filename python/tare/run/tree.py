"""Dataclasses as the JSON trees that a record holds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any


def to_tree(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON values, just as a store gives them back (tuples are lists); no NaN.

    Raises `TypeError` for anything that is neither JSON nor made of dataclasses and mappings.
    """
    return dict(json.loads(json.dumps(_members(value), default=_members, allow_nan=False)))


def _members(value: Any) -> dict[str, Any]:
    """One level of what JSON does not know: `dataclasses.asdict` copies every number of a histogram first."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a record holds no {type(value).__name__}: only JSON, dataclasses and mappings ({value!r:.60})"
    )
