from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tare.record.network_path import Hop
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.run.attempt.snapshot import Snapshot
from tare.run.ending import ArmWidth
from tare.store.files import StoreLayout
from tare.store.schema import FORMAT, metadata
from tools.record_reference import SECTIONS, meanings, renewed

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"
RECORD = (REFERENCE / "record.md").read_text()
TEXT = RECORD + (REFERENCE / "store.md").read_text()
SECTION = re.compile(r"^#+ (.+)$", re.MULTILINE)


def section(title: str) -> str:
    """From a heading to the next."""
    parts = SECTION.split(TEXT)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[title]


def names(text: str) -> set[str]:
    """Everything set as code."""
    return set(re.findall(r"`([^`]+)`", text))


def keys(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_key_of_a_record_is_documented() -> None:
    results = names(section("The record"))
    plain = set(RunRecord.model_fields) - {"outcome"}
    nested = {f"phases[].{name}" for name in PhaseTime.model_fields} | {
        f"outcome.{name}" for name in Outcome.model_fields
    }
    assert (plain | nested) - results == set()
    assert {name for name in results if name.split(".")[0].removesuffix("[]") in RunRecord.model_fields} >= plain


def test_no_key_of_a_record_is_documented_that_is_not_there() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", section("The record"), re.MULTILINE)
    first = {name for row in rows for name in names(row)}
    known = set(RunRecord.model_fields) | {f"phases[].{name}" for name in PhaseTime.model_fields}
    known |= {f"outcome.{name}" for name in Outcome.model_fields}
    assert first - known == set()


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("`path`", {hop.value for hop in Hop}),
        ("Phases", {phase.value for phase in Phase}),
        ("`snapshot`", keys(Snapshot) - {"data", "elsewhere"}),
        ("Formats", set()),
    ],
)
def test_every_key_of_a_tree_is_documented(title: str, wanted: set[str]) -> None:
    missing = sorted(wanted - names(section(title)))
    assert not missing, f"document {missing} in docs/reference under {title}"


@pytest.mark.parametrize("name", SECTIONS)
def test_tables_of_the_record_are_those_of_its_docstrings(name: str) -> None:
    assert renewed(name) == (REFERENCE / name).read_text(), f"`make schemas` renews docs/reference/{name}"


def test_a_figure_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ArmWidth\.n has no docstring"):
        list(meanings(ArmWidth))


@pytest.mark.parametrize("table", metadata.tables.values(), ids=lambda table: table.name)
def test_every_column_is_documented(table: object) -> None:
    name = getattr(table, "name", "")
    title = next(heading for heading in SECTION.findall(TEXT) if heading.startswith(f"`{name}`"))
    columns = {column.name for column in metadata.tables[name].columns}
    assert columns - names(section(title)) == set()


def test_every_path_and_the_format_are_documented(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    results = {name.split("/")[0] for name in names(section("The store"))}
    assert {path.name for path in (layout.database, layout.raw, layout.staging, layout.lock)} <= results
    assert re.search(rf"^\| {FORMAT} \|", section("Formats"), re.MULTILINE)
