"""What `tare report --format paper` writes: LaTeX that compiles, BibTeX, and figures of their own."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import store_of
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.report.content import Report, build_report
from tare.report.paper import FIGURES, METHODS, REFERENCES, TABLE, methods, references, table, tex, write_paper


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(synthetic.study(), synthetic.records(), 30, None, None)


@pytest.fixture(scope="module")
def folder(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    write_paper(report, folder)
    return folder


def test_every_figure_is_there_as_svg_and_pdf_with_colours_of_its_own(folder: Path) -> None:
    names = {path.stem for path in (folder / FIGURES).iterdir()}
    assert {"throughput", "blocks", "latency"} <= names
    for name in names:
        svg = (folder / FIGURES / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "var(" not in svg
        assert (folder / FIGURES / f"{name}.pdf").read_bytes().startswith(b"%PDF-")


def test_the_table_has_the_overheads_of_the_report(report: Report) -> None:
    rows = [line for line in table(report).splitlines() if line.endswith(r"\\")][1:]
    assert [row.split(" & ")[0] for row in rows] == list(synthetic.PATHS[1:])
    finding = report.analysis.finding("bridge", "throughput")
    assert finding.estimate.point is not None
    assert f"bridge & 5 & ${100 * finding.estimate.point:+.1f}$ & [$" in table(report)
    assert {row.count("&") for row in rows} == {5}


def test_the_paragraph_says_how_it_was_measured_and_cites_what_the_bibliography_has(report: Report) -> None:
    text = methods(report)
    for part in (
        "Each block ran every arm once, in random order",
        "paired by block, with 95 \\% t intervals",
        "seed",
    ):
        assert part in text
    (cited,) = re.findall(r"\\cite\{([^}]+)\}", text)
    assert re.findall(r"@misc\{([^,]+),", references(report)) == [cited, "percona-2016"]
    assert "Vadim Tkachenko" in references(report)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50 % of a_b", r"50 \% of a\_b"),
        ("{x}\\y", r"\{x\}\textbackslash{}y"),
        ("±2", r"$\pm$2"),
        ("a & b", r"a \& b"),
    ],
)
def test_what_latex_would_interpret_is_escaped(text: str, escaped: str) -> None:
    assert tex(text) == escaped


def test_a_folder_that_is_a_file_is_refused_with_a_way_forward(report: Report, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(StudyError, match="cannot write into") as refused:
        write_paper(report, tmp_path / "there")
    assert "--output" in str(refused.value)
    assert (tmp_path / "there").read_text() == "mine"


def test_the_command_names_what_it_wrote_and_asks_for_a_folder(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", synthetic.records(("bare", "bridge")))
    done = CliRunner().invoke(app, ["report", str(store), "--format", "paper", "--output", str(tmp_path / "paper")])
    assert done.exit_code == 0, done.output
    for name in (TABLE, METHODS, REFERENCES, f"{FIGURES}/throughput.pdf"):
        assert str(tmp_path / "paper" / name) in done.stdout.splitlines()
    refused = CliRunner().invoke(app, ["report", str(store), "--format", "paper"])
    assert isinstance(refused.exception, StudyError)
