"""The JSON Schema says of a study what reading it says, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tare.errors import StudyError
from tare.study.catalogue import studies
from tare.study.reading.load import loads
from tare.study.registry import Registry, installed
from tare.study.schema import kept_schema, study_schema
from tare.study.starter import starter


@pytest.fixture
def validator(registry: Registry) -> Draft202012Validator:
    schema = study_schema(registry)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def tree(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_a_right_study_fits_the_schema(validator: Draft202012Validator, text: str) -> None:
    assert [error.message for error in validator.iter_errors(tree(text))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("question:", "qestion:"),
        ("tables: 8", "table: 8"),
        ("tables: 8", 'tables: "8"'),
        ("measure_s: 1800", "measure_s: 0"),
        ("network: host", "network: hots"),
        ("deployment: container", "deployment: contaner"),
        ("database: mariadb", "database: mariabd"),
        ("name: load", "name: laod"),
        ("name: interleave", "name: interleaved"),
        ("sut.network: bridge", "sut.netwrk: bridge"),
        ("sut.network: bridge", "sut.network: brige"),
        ("sut.network: bridge", "protocol.blocks: 3"),
        ("sets: workload.threads", "sets: workload.thread"),
        ("levels: [1, 16]", "levels: []"),
        ("protocol.blocks: 4", "protocol.blocks: 0"),
        ("metric: throughput", "metric: latency_p90"),
        ("format: 1", "format: 2"),
    ],
)
def test_schema_and_reader_refuse_the_same(
    old: str, new: str, validator: Draft202012Validator, text: str, registry: Registry
) -> None:
    wrong = text.replace(old, new, 1)
    assert wrong != text
    assert not validator.is_valid(tree(wrong))
    with pytest.raises(StudyError):
        loads(wrong, registry)


def test_a_setting_of_any_name_may_be_patched(validator: Draft202012Validator, text: str) -> None:
    assert validator.is_valid(tree(text.replace("host: {}", "host: {sut.settings.a.b: 1}")))


@pytest.mark.parametrize("name", ["percona-2016", "starter"])
def test_shipped_studies_fit_the_schema_of_this_installation(name: str) -> None:
    shipped = starter("mine") if name == "starter" else studies()[name].read_text()
    errors = Draft202012Validator(study_schema(installed())).iter_errors(tree(shipped))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_drift_is_found_and_mended(tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path)]
    assert "missing" in (kept_schema(installed()).keep(["--check", *folder]) or "")
    assert kept_schema(installed()).keep(folder) is None
    assert kept_schema(installed()).keep(["--check", *folder]) is None
    kept = tmp_path / "study.schema.json"
    changed = json.loads(kept.read_text())
    changed["title"] = "another"
    kept.write_text(json.dumps(changed))
    assert "out of date" in (kept_schema(installed()).keep(["--check", *folder]) or "")
