"""The benchmarks' README: each benchmark has a row, and each row leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "bench" / "README.md"


def test_each_benchmark_has_a_row() -> None:
    targets = set(re.findall(r"^(bench-\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| `make (bench-\w+)`", README.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(targets)


def test_each_row_names_its_program_and_a_journal_entry_that_are_there() -> None:
    rows = [line for line in README.read_text().splitlines() if line.startswith("| `make")]
    for row in rows:
        links = re.findall(r"\]\(([^)]+)\)", row)
        assert any("docs/journal/" in link for link in links), row
        assert all((README.parent / link).exists() for link in links), row
