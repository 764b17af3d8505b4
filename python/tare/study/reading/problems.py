"""Validation errors of data models as one `StudyError` with position, key path and hint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tare.errors import StudyError
from tare.study.metrics import COMPARED_METRIC, LATENCIES, PRIMARY, PUBLISHED_METRIC, SPECS
from tare.study.reading.document import Document, KeyPath, dotted
from tare.study.suggest import did_you_mean

Model = TypeVar("Model", bound=BaseModel)
Complaint = tuple[str, str | None]
"""What is wrong, and a hint."""

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}
_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$": "a plain name: letters, digits, dots, hyphens; at most 63 characters",
    r"^/[^\x00-\x1f\x7f]*$": "an absolute path",
    r"\S": "text with at least one visible character",
    r"^\S+$": "a word without spaces",
    r"^[a-z][a-z0-9-]{0,30}$": "a name of lowercase letters, digits and hyphens, a letter first; at most 31",
    r"^[a-z_][a-z0-9_-]{0,31}$": "a user name",
    r"^\d+(-\d+)?(,\d+(-\d+)?)*$": 'a CPU list such as "0-1,3"',
    r"^[1-9]\d*[KMG]?$": "a size in bytes, or with K, M or G: 512M",
}

_CHOICES = {
    PUBLISHED_METRIC: (PRIMARY, *LATENCIES, "read_latency_mean"),
    COMPARED_METRIC: (*SPECS, "read_latency_mean"),
}
"""Patterns that stand for names, with the names to offer."""


def checked(model: type[Model], document: Document, prefix: KeyPath = ()) -> Model:
    """Validate the value at `prefix` as a `model`. Raises its first error in the order of the file."""
    tree = document.at(prefix)
    try:
        # JSON mode: strict types, yet a list may be a tuple and a text an enumeration's value.
        return model.model_validate_json(json.dumps(tree))
    except ValidationError as error:
        raise _first(error.errors(), model, document, prefix, tree) from error


def check_key(model: type[BaseModel], document: Document, prefix: KeyPath, key: KeyPath) -> None:
    """Validate as `checked` does, but raise only an error at `key` of `prefix`, not of combinations."""
    tree = document.at(prefix)
    try:
        model.model_validate_json(json.dumps(tree))
    except ValidationError as error:
        if there := [detail for detail in error.errors() if _path(detail, tree)[: len(key)] == key]:
            raise _first(there, model, document, prefix, tree) from error


def _first(
    errors: Sequence[ErrorDetails], model: type[BaseModel], document: Document, prefix: KeyPath, tree: Any
) -> StudyError:
    placed: dict[KeyPath, list[ErrorDetails]] = {}
    for detail in errors:
        placed.setdefault(_path(detail, tree), []).append(detail)

    def position(path: KeyPath) -> tuple[bool, int, int, int]:
        # A key that is missing is often there under a wrong name, and then that is what to say.
        absent = placed[path][0]["type"] == "missing"
        origin = document.origin(prefix + path)
        return absent, origin.line, origin.column, len(path)

    path = min(placed, key=position)
    what, hint = _sentence(placed[path], _known_keys(model, path[:-1]))
    hint = hint or _example_of(model, path)
    if not path:
        hint = hint or _patches(document, prefix)
    return document.error(prefix + path, what, hint=hint)


def _patches(document: Document, prefix: KeyPath) -> str | None:
    """Name the patches that made an invalid combination, as the place to look first."""
    origins = [origin for path, origin in document.origins.items() if path[:-1] == prefix != path]
    patched = [origin for origin in origins if origin.path[:1] in {("factors",), ("scales",)}]
    named = ", ".join(f"{dotted(origin.path)} on line {origin.line}" for origin in patched)
    return f"as set by {named}" if named else None


def _path(detail: ErrorDetails, tree: Any) -> KeyPath:
    """Return the path of an error in `tree`: its `loc` without the names of union members, which are no keys."""
    path: KeyPath = ()
    value = tree
    for key in detail["loc"]:
        listed = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if listed or (isinstance(value, Mapping) and key in value):
            path, value = (*path, key), value[key]
    if detail["type"] == "missing" and isinstance(detail["loc"][-1], str):
        path = (*path, detail["loc"][-1])
    return path


def _sentence(details: Sequence[ErrorDetails], known: Iterable[str]) -> Complaint:
    """Describe an error, with a hint. Several details at one path are from members of a union."""
    detail = details[0]
    if len(details) > 1 and all(other["type"] in _EXPECTED for other in details):
        wanted = list(dict.fromkeys(_EXPECTED[other["type"]] for other in details))
        return f"expected {', '.join(wanted[:-1])} or {wanted[-1]}, got {shown(detail['input'])}", None
    if detail["type"] == "extra_forbidden":
        key = detail["loc"][-1]  # of a union, another member may know it
        return "unknown key", did_you_mean(key, (name for name in known if name != key), kind="known here")
    for rule in (_absent, _wrong_type, _not_a_choice, _ill_formed, _out_of_bounds):
        if sentence := rule(detail):
            return sentence
    return detail["msg"].removeprefix("Value error, "), None


def _absent(detail: ErrorDetails) -> Complaint | None:
    if detail["type"] == "missing" and isinstance(detail["loc"][-1], int):
        return f"the list is too short: entry {detail['loc'][-1] + 1} is missing", None
    if detail["type"] == "missing":
        return "this key is missing", None
    if detail["type"] == "too_short" and not detail["input"]:
        return "must not be empty", None
    return None


def _wrong_type(detail: ErrorDetails) -> Complaint | None:
    kind, given = detail["type"], detail["input"]
    if kind not in _EXPECTED:
        return None
    return f"expected {_EXPECTED[kind]}, got {shown(given)}", _type_hint(kind, given)


def _not_a_choice(detail: ErrorDetails) -> Complaint | None:
    if detail["type"] not in {"enum", "literal_error"}:
        return None
    expected = str(detail.get("ctx", {}).get("expected", ""))
    if names := re.findall(r"'([^']*)'", expected):
        return f"unknown value {shown(detail['input'])}", did_you_mean(detail["input"], names)
    return f"expected {expected}, got {shown(detail['input'])}", None


def _ill_formed(detail: ErrorDetails) -> Complaint | None:
    if detail["type"] != "string_pattern_mismatch":
        return None
    pattern = detail.get("ctx", {}).get("pattern", "")
    if pattern in _CHOICES:
        return f"unknown value {shown(detail['input'])}", did_you_mean(detail["input"], _CHOICES[pattern])
    return f"{shown(detail['input'])} is not {_PATTERNS.get(pattern, f'of the form {pattern}')}", None


def _out_of_bounds(detail: ErrorDetails) -> Complaint | None:
    context = detail.get("ctx", {})
    for bound, words in (("gt", "greater than"), ("ge", "at least"), ("lt", "less than"), ("le", "at most")):
        if bound in context:
            return f"must be {words} {context[bound]:.15g}, got {shown(detail['input'])}", None
    return None


def _type_hint(kind: str, given: Any) -> str | None:
    if kind == "string_type" and isinstance(given, int | float):
        return "quote it if it is meant as text"
    if kind == "bool_type" and str(given).lower() in {"yes", "no", "on", "off", "y", "n"}:
        return "write true or false; YAML 1.2 reads yes and no as text"
    if kind in {"int_type", "float_type"} and isinstance(given, str):
        return "write a plain number, without quotes or unit"
    return None


def shown(value: Any) -> str:
    """Return a value as an error shows it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…'"


def _known_keys(model: type[BaseModel], path: KeyPath) -> Iterable[str]:
    """Return the keys that `model` knows at `path`, from its JSON schema; none if any key is allowed."""
    schema = _schema(model)
    schemas: list[Mapping[str, Any]] = [schema]
    for key in path:
        schemas = [inner for outer in schemas for inner in _inside(outer, key, schema)]
    return sorted({name for outer in schemas for name in _resolved(outer, schema).get("properties", {})})


def _example_of(model: type[BaseModel], path: KeyPath) -> str | None:
    """Quote the key's example in the model, if there is one."""
    while path and not isinstance(path[-1], str):
        path = path[:-1]
    if not path:
        return None
    schema = _schema(model)
    schemas: list[Mapping[str, Any]] = [schema]
    for key in path[:-1]:
        schemas = [inner for outer in schemas for inner in _inside(outer, key, schema)]
    of_key = (_resolved(outer, schema).get("properties", {}).get(path[-1], {}) for outer in schemas)
    example = next((each["examples"][0] for each in of_key if "examples" in each), None)
    return None if example is None else f"as in `{path[-1]}: {_flow(example)}`"


def _flow(value: object) -> str:
    """Write a small value in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    """JSON schema of a model; cached, as it takes 10 ms and a study may be refused for each of many arms."""
    return model.model_json_schema()


def _inside(outer: Mapping[str, Any], key: str | int, root: Mapping[str, Any]) -> list[dict[str, Any]]:
    here = _resolved(outer, root)
    options = [*here.get("anyOf", ()), *here.get("oneOf", ())]
    if options:
        return [inner for option in options for inner in _inside(option, key, root)]
    inner = here.get("items") if isinstance(key, int) else None
    if isinstance(key, str):
        inner = here.get("properties", {}).get(key) or here.get("additionalProperties")
        patterns = list(here.get("patternProperties", {}).values())
        inner = inner or (patterns[0] if patterns else None)
    return _options(inner, root) if isinstance(inner, dict) else []


def _options(schema: dict[str, Any], root: Mapping[str, Any]) -> list[dict[str, Any]]:
    here = _resolved(schema, root)
    options = [*here.get("anyOf", ()), *here.get("oneOf", ())]
    return [inner for option in options for inner in _options(option, root)] if options else [dict(here)]


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Mapping[str, Any] = root["$defs"][str(reference).rsplit("/", 1)[-1]]
    return target
