"""The glossary and the code use the same words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
RETIRED = frozenset({
    "Lodging", "lodge", "Lot", "Household", "housed", "kin", "Seat", "seat", "seated", "strays", "Rendezvous",
    "rendezvous", "witness", "Onlooker", "Herald", "Looker", "Looking", "Door", "Desk", "Room", "make_room",
    "with_sides", "Handed", "Parcel", "Commons", "not_lodged", "Nursery", "nursery", "Crew", "OwnCrew", "crew",
    "Board", "board", "Stranded", "stranded", "dealing", "Chronicler", "chronicler", "chroniclers", "census",
    "untold", "borne_out", "carried_out", "place_of",
})  # fmt: skip
"""Names that a reader had to decode; each has a plain successor."""

VAGUE = frozenset({"told", "said", "found"})
"""Names of results that do not say what they are."""
MOST_FILES_WITH_VAGUE_NAMES = 27
"""Of the tests; to be lowered with each that goes."""


def names_of(text: str) -> set[str]:
    """Every identifier that a module defines: classes, functions, parameters, variables and attributes."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


@pytest.fixture(scope="module")
def names() -> dict[str, Path]:
    """Name → a file of the package that defines it."""
    return {
        name: path
        for path in sorted((ROOT / "python" / "tare").rglob("*.py"))
        for name in names_of(path.read_text())
    }


def test_each_name_in_the_glossary_is_in_the_code(names: dict[str, Path]) -> None:
    cells = [line.split("|")[3] for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert len(listed) > 30
    assert not [name for name in listed if name not in names]


def test_no_retired_name_is_in_the_code(names: dict[str, Path]) -> None:
    assert not {name: names[name] for name in RETIRED & names.keys()}


def fragments(text: str) -> list[str]:
    """Docstrings that begin with `Of`: a phrase that belongs to whatever stands above it."""
    return re.findall(r'^\s*"""(Of .*)', text, re.MULTILINE)


def test_no_docstring_is_a_fragment() -> None:
    modules = (ROOT / "python" / "tare").rglob("*.py")
    assert not {str(path): phrases for path in modules if (phrases := fragments(path.read_text()))}
    assert fragments('x = 1\n"""Of the database."""\n') == ['Of the database."""']


def test_vague_names_of_results_grow_no_more() -> None:
    tests = (ROOT / "tests").rglob("*.py")
    assert sum(bool(VAGUE & names_of(path.read_text())) for path in tests) <= MOST_FILES_WITH_VAGUE_NAMES


def test_a_planted_name_is_found() -> None:
    source = "class Desk:\n    def f(self, kin):\n        self.seat = kin\n        room = 1\n"
    assert {"Desk", "kin", "seat"} <= names_of(source)
