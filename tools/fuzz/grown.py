"""Documents grown from a JSON Schema: most of what is needed, some of what is possible, a little that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from tools.fuzz.mutations import SCALARS

_WRONG = 0.03
_DEEPEST = 8
_NUMBERS = (0, 1, -1, 2, 7, 0.5, 60, 2016, 1e9, 10**18, 5e-324)
_TEXTS = (
    "a", "b", "db", "pair-1", "local", "/tmp", "throughput", "latency_p95", "https://example.org/x", "10.0.0.1",
    "192.168.7.102/24", "user@host", "ssh://root@h:22", "host:22", "{a}_{b}.txt", "1 GiB", "2026-11-25",
)  # fmt: skip


def grown(schema: Mapping[str, Any], chance: Random) -> Any:
    """A value that the schema may allow; the same seed gives the same value."""
    return _grown(schema, schema, chance, 0)


def _grown(part: Any, whole: Mapping[str, Any], chance: Random, depth: int) -> Any:
    if chance.random() < _WRONG or not isinstance(part, Mapping):
        return chance.choice(SCALARS)
    if "$ref" in part:
        found: Any = whole
        for step in str(part["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return _grown(found, whole, chance, depth + 1)
    for key in ("oneOf", "anyOf"):
        if key in part:
            return _grown(chance.choice(part[key]), whole, chance, depth + 1)
    if "allOf" in part and "properties" not in part:
        return _grown(part["allOf"][0], whole, chance, depth + 1)
    if fixed := [part["const"]] if "const" in part else part.get("enum"):
        return chance.choice(fixed)
    kind = part.get("type", "string")
    return _of_kind(chance.choice(kind) if isinstance(kind, list) else kind, part, whole, chance, depth)


def _of_kind(kind: str, part: Mapping[str, Any], whole: Mapping[str, Any], chance: Random, depth: int) -> Any:
    if kind == "object":
        return _mapping(part, whole, chance, depth)
    if kind == "array":
        items: Any = part.get("items") or next(iter(part.get("prefixItems", ())), {})
        count = 0 if depth > _DEEPEST else chance.choice((0, 1, 1, 2, 3))
        return [_grown(items, whole, chance, depth + 1) for _ in range(max(count, part.get("minItems", 0)))]
    if kind in ("number", "integer"):
        bounds = [
            part[key] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if key in part
        ]
        number = chance.choice((*_NUMBERS, *bounds))
        return int(number) if kind == "integer" else number
    return {"boolean": chance.random() < 0.5, "null": None}.get(kind, chance.choice(_TEXTS))


def _mapping(part: Mapping[str, Any], whole: Mapping[str, Any], chance: Random, depth: int) -> dict[str, Any]:
    required, results = part.get("required", ()), dict[str, Any]()
    for name, below in part.get("properties", {}).items():
        if chance.random() < (0.97 if name in required else 0.4 if depth < _DEEPEST else 0.0):
            results[name] = _grown(below, whole, chance, depth + 1)
    more = part.get("additionalProperties")
    if isinstance(more, Mapping) and depth < _DEEPEST:
        for name in chance.sample(_TEXTS, chance.choice((0, 1, 2))):
            results[name] = _grown(more, whole, chance, depth + 1)
    return results
