"""JSON Schema of the study file, for editors: `python -m tare.study.schema [--check]`.

Written to schemas/study.schema.json with the names of plug-ins and the parameters of workloads, for completion.
Third-party plug-ins are left out, so that the file is the same on every machine. `--check` fails if the file is out
of date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tare.study.model import ClientSpec, MonitorSpec, StorageSpec, SutSpec
from tare.study.protocol_spec import PROTOCOL_SPECS, ImportedSpec
from tare.study.reading.file import StudyFile
from tare.study.reading.patches import SCALABLE, TEMPLATE, WHOLE_ROOTS
from tare.study.registry import Registry, built_in
from tare.study.values import Quantities

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


NAME = "study.schema.json"


@dataclass(frozen=True)
class KeptSchema:
    """A schema in schemas/. `module`: writes it (`python -m MODULE`); `make`: schema of the models, with titles."""

    name: str
    title: str
    module: str
    make: Callable[[], Mapping[str, Any]]

    def tree(self) -> dict[str, Any]:
        """Return the schema."""
        return {"$schema": _DIALECT, "title": self.title, **untitled(self.make())}

    def text(self) -> str:
        """Return the text of the file: keys in the models' order, indented by two spaces, with a final newline."""
        return json.dumps(self.tree(), indent=2, ensure_ascii=False) + "\n"

    def keep(self, argv: Sequence[str] | None = None) -> str | None:
        """Write the schema, or with `--check` describe how the kept one differs: an argument for `sys.exit`."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=f"JSON Schema: {self.title}")
        parser.add_argument("--check", action="store_true", help="fail if the schema on disk is out of date")
        parser.add_argument("--folder", type=Path, default=Path("schemas"), help="path of the schema")
        options = parser.parse_args(argv)
        path: Path = options.folder / self.name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(), encoding="utf-8")
            return None
        kept = path.read_text(encoding="utf-8") if path.exists() else None
        if kept == self.text():
            return None
        state = "missing" if kept is None else "out of date"
        return f"{path} is {state}: run `python -m {self.module}`"


def untitled(schema: Any) -> Any:
    """Remove pydantic's titles, which only repeat the keys; put descriptions on one line."""
    if isinstance(schema, list):
        return [untitled(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: untitled(value) for key, value in schema.items() if key != "title" or isinstance(value, Mapping)}
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


def _models(registry: Registry) -> dict[str, Any]:
    """Return the models' own schema, with templates and patches for the parts that a study file may leave open."""
    schema: dict[str, Any] = untitled(StudyFile.model_json_schema())
    defs: dict[str, Any] = schema["$defs"]
    defs.pop(ImportedSpec.__name__)
    template = {
        "sut": _section(SutSpec, defs, deployment=registry.deployments, database=registry.databases),
        "client": _section(ClientSpec, defs, deployment=registry.deployments),
        "workload": _workload(registry, defs),
        "monitors": _monitors(registry, defs),
        "protocol": _protocol(registry, defs),
    }
    defs[StorageSpec.__name__]["properties"]["kind"]["enum"] = sorted(registry.storages)
    schema["properties"].update(template)
    template["quantities"] = _adopt(Quantities, defs)
    defs["LevelPatch"] = _patch({root: template[root] for root in TEMPLATE}, defs)
    defs["ScalePatch"] = _patch({root: template[root] for root in SCALABLE}, defs)
    levels = defs["PatchFactor"]["properties"]["levels"]["patternProperties"]
    levels.update({pattern: {"$ref": "#/$defs/LevelPatch"} for pattern in levels})
    defs["ScaleSpec"]["properties"]["set"] = {"$ref": "#/$defs/ScalePatch"}
    defs["KeyFactor"]["properties"]["sets"] = _keys_of(defs["LevelPatch"])
    several = {"type": "array", "minItems": 1, "items": _keys_of(defs["LevelPatch"])}
    kept = defs["PatchFactor"]["properties"]["sets"]
    defs["PatchFactor"]["properties"]["sets"] = (
        {"description": kept["description"], **several} if "description" in kept else several
    )
    return schema


def _section(model: type[BaseModel], defs: dict[str, Any], **names: Iterable[str]) -> dict[str, Any]:
    """Make `sut` or `client` as a template: no key is required, since scale and levels may set missing ones."""
    schema = _adopt(model, defs)
    schema.pop("required", None)
    for key, known in names.items():
        schema["properties"][key]["enum"] = sorted(known)
    return schema


def _workload(registry: Registry, defs: dict[str, Any]) -> dict[str, Any]:
    """Make one alternative for each workload, distinguished by its name."""
    alternatives = []
    for name, model in sorted(registry.workloads.items()):
        schema = _adopt(model, defs)
        schema["properties"] = {"name": {"const": name}, **schema["properties"]}
        alternatives.append({**schema, "required": ["name"]})
    return {"anyOf": alternatives}


def _monitors(registry: Registry, defs: dict[str, Any]) -> dict[str, Any]:
    """Make one key for each monitor; `null` disables it."""
    each = {"anyOf": [_adopt(MonitorSpec, defs), {"type": "null"}]}
    properties = dict.fromkeys(sorted(registry.monitors), each)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _protocol(registry: Registry, defs: dict[str, Any]) -> dict[str, Any]:
    """Make one alternative for each protocol, distinguished by its name, which is optional for the default."""
    return {"anyOf": [_adopt(PROTOCOL_SPECS[name], defs) for name in sorted(registry.protocols)]}


def _adopt(model: type[BaseModel], defs: dict[str, Any]) -> dict[str, Any]:
    """Return a model's schema, with its definitions moved to `defs`."""
    schema: dict[str, Any] = untitled(model.model_json_schema())
    defs.update(schema.pop("$defs", {}))
    return schema


def _patch(roots: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Make a patch: one property for each dotted key below `roots`, and any name below a free mapping."""
    properties: dict[str, Any] = {}
    patterns: dict[str, Any] = {}
    for root, schema in roots.items():
        _flatten(root, schema, defs, properties, patterns)
        if root in WHOLE_ROOTS:
            properties[root] = schema
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": False,
    }


def _flatten(
    prefix: str,
    schema: Mapping[str, Any],
    defs: Mapping[str, Any],
    properties: dict[str, Any],
    patterns: dict[str, Any],
) -> None:
    schema = _referred(schema, defs)
    for alternative in (_referred(each, defs) for each in schema.get("anyOf", [schema])):
        for key, written in alternative.get("properties", {}).items():
            dotted = f"{prefix}.{key}"
            inner = {word: meaning for word, meaning in written.items() if word != "default"}
            # Two workloads or protocols may give one key two meanings; a patch may then have either.
            kept = properties.get(dotted, inner)
            properties[dotted] = inner if kept == inner else {"anyOf": [kept, inner]}
            _flatten(dotted, inner, defs, properties, patterns)
        free = alternative.get("additionalProperties")
        if isinstance(free, dict):
            patterns[f"^{re.escape(prefix)}[.].+$"] = free


def _referred(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    referred: Mapping[str, Any] = defs[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema
    return referred


def _keys_of(patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of names in `sets`: the keys that a patch may have."""
    free = [{"pattern": pattern} for pattern in patch["patternProperties"]]
    return {"type": "string", "anyOf": [{"enum": list(patch["properties"])}, *free]}


def kept_schema(registry: Registry) -> KeptSchema:
    """Return the schema kept in schemas/, with the plug-ins of `registry`."""
    return KeptSchema(NAME, "tare study", "tare.study.schema", partial(_models, registry))


def study_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of a study file that uses the plug-ins of `registry`."""
    return kept_schema(registry).tree()


if __name__ == "__main__":
    sys.exit(kept_schema(built_in()).keep())
