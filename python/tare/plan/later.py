"""Keys that came into studies after stores had been written: by default they mean what was meant without them.

A plan's digest leaves out such a key while it has its default, so that a new key orphans no half-full store.
Whoever adds a key to what `decisive` gives adds its line here; a test with a digest of before insists on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.study.model import StorageSpec

LATER_IN_PROTOCOL: Mapping[str, Any] = {"measure": "set", "measure_most_s": None, "paired": False}
LATER_IN_ARM: Mapping[str, Any] = {
    "settings.monitors.*.optional": False,
    "settings.monitors": {},
    "settings.sut.nodes": 1,
    "settings.sut.limits.disk_iops": None,
    "settings.client.limits.disk_iops": None,
    "settings.sut.storage.sync": None,
    "settings.sut.storage.rsize": None,
    "settings.sut.storage.wsize": None,
    "settings.sut.storage": StorageSpec().model_dump(mode="json", exclude={"sync", "rsize", "wsize"}),
    "settings.sut.vm": None,
}
"""Dotted paths; `*` is any key. An inner key stands before the one around it, which is its default only then."""


def without(tree: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a JSON tree less each key of `later` that has its default there."""
    pruned = _copied(tree)
    for path, default in later.items():
        _prune(pruned, path.split("."), default)
    return pruned


def _copied(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in tree.items()}


def _prune(tree: dict[str, Any], path: list[str], default: Any) -> None:
    step, rest = path[0], path[1:]
    for key in list(tree) if step == "*" else [step]:
        if key not in tree:
            continue
        if not rest:
            if tree[key] == default and type(tree[key]) is type(default):
                del tree[key]
        elif isinstance(tree[key], dict):
            _prune(tree[key], rest, default)
