"""Dataclasses as the JSON trees that a record holds."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


def to_tree(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON values, just as a store gives them back (tuples are lists); no NaN."""
    tree = json.loads(json.dumps(dataclasses.asdict(value), allow_nan=False))
    return dict(tree)
