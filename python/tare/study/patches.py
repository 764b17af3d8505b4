"""Dotted keys, and the patches that scales and levels make with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tare.study.document import Document, KeyPath
from tare.study.suggest import did_you_mean

TEMPLATE = ("sut", "client", "workload", "monitors")
"""What a level may patch."""
SCALABLE = (*TEMPLATE, "protocol", "quantities")
"""What a scale may patch."""
_FLAT = (("sut", "settings"), ("workload", "properties"))
"""The database's own settings and a generator's own properties are flat: their names may hold dots."""


def split(key: str) -> KeyPath:
    """`workload.threads` → its path; what follows `sut.settings.` or `workload.properties.` is one name."""
    parts = key.split(".")
    if tuple(parts[:2]) in _FLAT and len(parts) > 2:
        return (*parts[:2], ".".join(parts[2:]))
    return tuple(parts)


def apply(document: Document, source: KeyPath, key: str, roots: Collection[str]) -> Document:
    """`document` with what stands at `source` put where the dotted `key` says."""
    target = split(key)
    if target[0] not in roots:
        hint = did_you_mean(target[0], roots, kind="a patch may set keys of")
        raise document.error(source, f"there is no {target[0]!r} to patch", hint=hint)
    if len(target) == 1 or "" in target:
        raise document.error(source, "a patch sets one dotted key", hint=f"such as {target[0]}.KEY: VALUE")
    _check_way(document, source, target)
    return document.patched(target, source)


def apply_all(document: Document, source: KeyPath, patch: Mapping[str, object], roots: Collection[str]) -> Document:
    """`document` with every key of the patch at `source` applied."""
    for key in patch:
        document = apply(document, (*source, key), key, roots)
    return document


def _check_way(document: Document, source: KeyPath, target: KeyPath) -> None:
    value: object = document.tree
    for n, key in enumerate(target[:-1]):
        value = value.get(str(key)) if isinstance(value, Mapping) else None
        if value is None:
            return
        if not isinstance(value, Mapping):
            held = ".".join(map(str, target[: n + 1]))
            raise document.error(source, f"{held} holds one value and has no keys", hint=f"patch {held} itself")
