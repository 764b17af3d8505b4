"""Dotted keys, and the patches that scales and levels make with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from tare.study.reading.document import Document, KeyPath
from tare.study.suggest import did_you_mean

TEMPLATE = ("sut", "client", "workload", "monitors")
"""Sections that a level may patch."""
SCALABLE = (*TEMPLATE, "protocol", "quantities")
"""Sections that a scale may patch."""
WHOLE_ROOTS = ("workload", "protocol")
"""Sections that a patch may set as a whole, since other generators and protocols have other keys."""
_FLAT = (("sut", "settings"), ("sut", "sysctls"), ("workload", "properties"))
"""The database's own settings, sysctls and a generator's own properties are flat: their names may contain dots."""


_NAME = r"""(?:"[^"]+"|'[^']+'|[^.'"]+)"""
_WHOLE, _PART = re.compile(rf"{_NAME}(?:\.{_NAME})*"), re.compile(_NAME)


def split(key: str) -> KeyPath:
    """Split a dotted key: `workload.threads`. A quoted part is one name with dots: `workload.properties."a.b"`.

    What follows `sut.settings.`, `sut.sysctls.` or `workload.properties.` is one name without quotes, too. Raises
    `ValueError` if a part is empty or a quotation is not closed.
    """
    head = key.split(".")[:2]
    rest = key[len(".".join(head)) + 1 :]
    if tuple(head) in _FLAT and rest and rest[0] not in "\"'":
        return (*head, rest)
    if not _WHOLE.fullmatch(key):
        raise ValueError("a quote is not closed, or a part of the key is empty")
    return tuple(part.strip("\"'") for part in _PART.findall(key))


def plain(key: str) -> str:
    """Return the key without quotes, as settings and readings of runs are named."""
    return ".".join(map(str, split(key)))


def path_of(document: Document, source: KeyPath, key: str) -> KeyPath:
    """Split a key as `split` does. Raises `StudyError` at `source` for what is no dotted key."""
    try:
        return split(key)
    except ValueError as error:
        hint = 'put the whole name into quotes: workload.properties."NAME.WITH.DOTS"'
        raise document.error(source, f"{key!r} is not a dotted key: {error}", hint=hint) from error


def apply(document: Document, source: KeyPath, key: str, roots: Collection[str]) -> Document:
    """Return `document` with the value at `source` placed at the dotted `key`."""
    if "." not in key.strip("."):
        _must_be_root(document, source, key.strip("."), roots)
        if key in WHOLE_ROOTS and isinstance(document.at(source), Mapping):
            return document.patched((key,), source)
        raise document.error(source, "a patch sets one dotted key", hint=f"such as {key.strip('.')}.KEY: VALUE")
    target = path_of(document, source, key)
    _must_be_root(document, source, str(target[0]), roots)
    _check_parents(document, source, target)
    return document.patched(target, source)


def _must_be_root(document: Document, source: KeyPath, root: str, roots: Collection[str]) -> None:
    if root not in roots:
        hint = did_you_mean(root, roots, kind="a patch may set keys of")
        raise document.error(source, f"there is no {root!r} to patch", hint=hint)


def apply_all(document: Document, source: KeyPath, patch: Mapping[str, object], roots: Collection[str]) -> Document:
    """Return `document` with every key of the patch at `source` applied."""
    for key in patch:
        document = apply(document, (*source, key), key, roots)
    return document


def _check_parents(document: Document, source: KeyPath, target: KeyPath) -> None:
    value: object = document.tree
    for n, key in enumerate(target[:-1]):
        value = value.get(str(key)) if isinstance(value, Mapping) else None
        if value is None:
            return
        if not isinstance(value, Mapping):
            held = ".".join(map(str, target[: n + 1]))
            raise document.error(source, f"{held} holds one value and has no keys", hint=f"patch {held} itself")
