"""A study file as a plain tree that knows where each of its keys was written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from tare.errors import StudyError

KeyPath = tuple[str | int, ...]
MAX_BYTES = 256 * 1024
"""A study is written by hand; a longer file is something else, and slow to read."""

_DEEP = 500
_LEFT_TO_PYTHON = ("&", "*", "%", "!", "\t", "|#", ">#", "|\n#", ">\n#")
"""Marks of anchors, aliases, directives, tags, tabs, and block scalars that begin with a comment."""
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that change the displayed order of a text (https://trojansource.codes, Unicode's annex 9)."""
_TAG = "tag:yaml.org,2002:"
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True)
class Origin:
    """Where a value was written: line and column from 1, and its key path in the file."""

    line: int
    column: int
    path: KeyPath


@dataclass(frozen=True)
class Document:
    """A file's tree, and the origin of every key in it.

    After a patch, the origin of a patched key is the patch: an error has to name it.
    """

    file: str
    text: str
    tree: dict[str, Any]
    origins: Mapping[KeyPath, Origin]

    def error(self, path: KeyPath, what: str, *, hint: str | None = None) -> StudyError:
        """Make the error at `path`, or at its nearest parent that was written."""
        origin = self.origin(path)
        key = f" {dotted(origin.path)}:" if origin.path else ""
        key = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in key)
        return StudyError(f"{self.file}:{origin.line}:{origin.column}:{key} {what}", hint=hint)

    def origin(self, path: KeyPath) -> Origin:
        """Return the origin of `path`; for a missing key, the position of its parent."""
        known = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.origins)
        origin = self.origins[known]
        return replace(origin, path=origin.path + path[len(known) :])

    def patched(self, target: KeyPath, source: KeyPath) -> Document:
        """Return a copy in which `target` holds the value at `source`, with its origin."""
        return self._with(target, self, source)

    def restored(self, key: KeyPath, other: Document) -> Document:
        """Return a copy in which `key` holds the value that it has in `other`."""
        return self._with(key, other, key)

    def _with(self, target: KeyPath, other: Document, source: KeyPath) -> Document:
        origins = dict(self.origins)
        for path in _at_and_below(self.origins, target):
            del origins[path]
        for path in _at_and_below(other.origins, source):
            origins[target + path[len(source) :]] = other.origins[path]
        return replace(self, tree=_replaced(self.tree, target, other.at(source)), origins=origins)

    def at(self, path: KeyPath) -> Any:
        """Return the value at `path`. Raises `KeyError` or `IndexError` if there is none."""
        value: Any = self.tree
        for key in path:
            value = value[key]
        return value


def _at_and_below(paths: Iterable[KeyPath], top: KeyPath) -> list[KeyPath]:
    if not top:
        return list(paths)
    first, length = top[0], len(top)  # most paths differ in their first key
    return [path for path in paths if path and path[0] == first and path[:length] == top]


def dotted(path: KeyPath) -> str:
    """Return a key path as text: `factors.path.levels.bridge`, `arms[0].name`."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


@dataclass(frozen=True)
class Sort:
    """What a file should be, with hints for a file of another kind and for an unreadable file."""

    name: str
    where_none: str
    where_unread: str


STUDY = Sort("a study", "`tare init` writes a study to start from", "name a study, its directory or its file")


def read(path: Path, sort: Sort = STUDY) -> Document:
    """Read the file at `path`. Raises `StudyError` for anything that is not one plain YAML mapping."""
    return parse(_text(path, sort), str(path), sort)


def parse(text: str, file: str, sort: Sort = STUDY) -> Document:
    """Read a study, or another sort of file, from `text`; `file` is its name in errors."""
    root = Document(file=file, text=text, tree={}, origins={(): Origin(1, 1, ())})
    node = _compose(text, root)
    if not isinstance(node, MappingNode):
        what = "the file is empty" if node is None else f"{sort.name} is a mapping of keys to values"
        raise root.error((), what, hint=sort.where_none)
    reader = _Reader(root, {(): Origin(1, 1, ())})
    tree = reader.mapping(node, ())
    return replace(root, tree=tree, origins=reader.origins)


def _text(path: Path, sort: Sort) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}", hint=sort.where_unread) from error
    if len(data) > MAX_BYTES:
        raise StudyError(f"{path} is longer than {MAX_BYTES // 1024} KiB", hint=f"is this {sort.name}?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{path}:{line}:1: not UTF-8 text", hint="save the file as UTF-8") from error


def _compose(text: str, root: Document) -> Node | None:
    try:
        return _nodes(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Origin(mark.line + 1, mark.column + 1, ()) if mark else Origin(1, 1, ())
        tab = "\t" in (error.problem or "") or "\\t" in (error.problem or "")
        hint = "indent with spaces, not tabs" if tab else None
        raise _at(root, where).error((), f"not YAML: {error.problem or error.context}", hint=hint) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        what = f"the control character U+{code:04X}"
        raise _at(root, Origin(line, 1, ())).error((), f"not YAML: {what}") from error
    except YAMLError as error:
        raise root.error((), f"not YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise root.error((), "nested too deeply to be a study") from error


@lru_cache(maxsize=256)
def _nodes(text: str) -> Node | None:
    """Compose YAML nodes; cached, as composing takes most of the reading time, and `_Reader` changes no node.

    libyaml takes an eighth of the time. What it rejects, loses (anchors) or could recurse into too deeply is
    composed in Python, so all errors come from there.
    """
    if _is_plain(text):
        with suppress(YAMLError, UnicodeEncodeError):
            return _composed(text, pure=False)
    return _composed(text, pure=True)


def _composed(text: str, *, pure: bool) -> Node | None:
    node: Node | None = YAML(typ="safe", pure=pure).compose(text)
    return node


def _is_plain(text: str) -> bool:
    """Whether both composers agree: nothing of `_LEFT_TO_PYTHON`, and a nesting of a few hundred levels at most."""
    return (
        not any(mark in text for mark in _LEFT_TO_PYTHON)
        and text.count("[") + text.count("{") < _DEEP
        and all(len(line) < _DEEP for line in text.splitlines())
    )


def _at(root: Document, origin: Origin) -> Document:
    return replace(root, origins={(): origin})


@dataclass(frozen=True)
class _Reader:
    """Turns YAML nodes into plain values and records their origins."""

    root: Document
    origins: dict[KeyPath, Origin]

    def value(self, node: Node, path: KeyPath) -> Any:
        if node.anchor is not None:
            raise self._error(path, "YAML anchors and aliases are not supported", hint="write the value out")
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        if isinstance(node, SequenceNode):
            self._known_tag(node, path, "seq")
            return [self._item(item, (*path, n)) for n, item in enumerate(node.value)]
        if not isinstance(node, ScalarNode):
            raise self._error(path, "neither a value, a list nor a mapping")
        return self._scalar(node, path)

    def mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        self._known_tag(node, path, "map")
        tree: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            where = (*path, key)
            if key in tree:
                first = self.origins[where].line
                self._note(key_node, where)
                raise self._error(where, "duplicate key", hint=f"the first is on line {first}")
            self._note(key_node, where)
            tree[key] = self.value(value_node, where)
        return tree

    def _item(self, node: Node, path: KeyPath) -> Any:
        self._note(node, path)
        return self.value(node, path)

    def _key(self, node: Node, path: KeyPath) -> str:
        if not isinstance(node, ScalarNode) or node.tag == f"{_TAG}merge":
            self._note(node, path)
            raise self._error(path, "a key must be a plain word", hint="quote it if it contains { or [")
        return str(node.value)

    def _scalar(self, node: ScalarNode, path: KeyPath) -> str | int | float | bool | None:
        self._known_tag(node, path, "str", "int", "float", "bool", "null", "timestamp")
        text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
        if match := _REORDERING.search(text):
            what = f"the character U+{ord(match[0]):04X} changes the order in which the text is displayed"
            raise self._error(path, what, hint="remove it: no script needs this character")
        if kind == "null":
            return None
        if kind == "bool":
            return _TRUTH.get(text, text)
        if kind in {"int", "float"} and not node.style:
            return self._number(text.replace("_", ""), path)
        return text

    def _number(self, text: str, path: KeyPath) -> int | float:
        bare = text.lstrip("+-").lower()
        try:
            if bare[:2] in {"0x", "0o", "0b"}:
                return int(text, 0)
            if bare.isdecimal():
                return int(text)
            number = float(text.replace(".", "", 1) if bare in {".inf", ".nan"} else text)
        except ValueError as error:
            raise self._error(path, f"{text} is not a number", hint="quote it if it is meant as text") from error
        if not math.isfinite(number):
            raise self._error(path, f"{text} is not a finite number")
        return number

    def _known_tag(self, node: Node, path: KeyPath, *kinds: str) -> None:
        if node.tag not in {_TAG + kind for kind in kinds}:
            raise self._error(path, f"the tag {node.tag} is not supported", hint="leave the tag out")

    def _note(self, node: Node, path: KeyPath) -> None:
        self.origins[path] = Origin(node.start_mark.line + 1, node.start_mark.column + 1, path)

    def _error(self, path: KeyPath, what: str, *, hint: str | None = None) -> StudyError:
        return replace(self.root, origins=self.origins).error(path, what, hint=hint)


def _replaced(tree: Mapping[str, Any], target: KeyPath, value: Any) -> dict[str, Any]:
    """Return a copy of `tree` with `value` at `target`; missing mappings on the way are created."""
    key, rest = str(target[0]), target[1:]
    if not rest:
        return {**tree, key: value}
    inner = tree.get(key)
    return {**tree, key: _replaced(inner if isinstance(inner, Mapping) else {}, rest, value)}
