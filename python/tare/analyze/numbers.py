"""Access to numbers in the JSON of a record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard


def number_at(part: object, path: tuple[str, ...]) -> float | None:
    """Finite number at a path of fields, or of keys of a mapping; `None` if there is none."""
    value: Any = part
    for key in path:
        value = value.get(key) if is_mapping(value) else getattr(value, key, None)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is a mapping. Records have dicts; checking for the abstract class is ten times slower."""
    return value is not None and (type(value) is dict or isinstance(value, Mapping))
