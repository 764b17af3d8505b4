"""A fault in a mapping file is told with its line and key; the schema refuses the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.imports import load_mapping
from tare.imports.parsers.registry import PARSERS
from tare.imports.pattern import PathPattern
from tare.imports.schema import IMPORT_SCHEMA

ROOT = Path(__file__).parents[3]
GOOD = """\
format: 1
name: published
question: What does the container cost?
files: "**/r-{client}_{sut}_{threads}_*_{repetition}.txt"
parser: {name: ycsb}
factors:
  client: {bare: "false", docker: "true"}
  sut: {bare: "false", docker: "true"}
arms:
  - {name: I, levels: {client: bare, sut: bare}}
  - {name: IV, levels: {client: docker, sut: docker}}
baseline: I
conditions: {threads: any}
repetition: repetition
strata: [threads]
published:
  - {levels: {client: docker, sut: docker}, metric: read_latency_mean, relative: 0.01, where: Table 3}
  - {levels: {client: docker, sut: docker, threads: 10}, metric: latency_mean, relative: 0.02, where: Table 3}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "import.yaml"
    path.write_text(text)
    return path


def tree(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_a_right_mapping_is_read(tmp_path: Path) -> None:
    mapping = load_mapping(written(tmp_path, GOOD))
    assert mapping.pattern.parts == ("client", "sut", "threads", "repetition")
    assert mapping.arms == {
        "I": {"client": "bare", "sut": "bare"},
        "IV": {"client": "docker", "sut": "docker"},
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("baseline: I\n", "baseline: V\n", 12, "no arm is called 'V'"),
        ("strata: [threads]", "strata: [thread]", 15, "there is no condition 'thread'"),
        ("conditions: {threads: any}", "conditions: {}", 4, "the part {threads} is not used"),
        ("conditions: {threads: any}", "conditions: {threads: all}", 13, "threads"),
        ("repetition: repetition", "repetition: run", 14, "no part {run} is read"),
        ("_{threads}_", "_{threads_", 4, "unmatched brace"),
        ("_{threads}_", "_{sut}_", 4, "occurs twice"),
        ('sut: {bare: "false", docker: "true"}', 'sut: {bare: "true", docker: "true"}', 8, "'true' is the text"),
        ("parser: {name: ycsb}", "parser: {name: ycbs}", 5, "unknown value 'ycbs'"),
        ("client: docker, sut: docker, threads", "client: docker, threads", 18, "no level of factor 'sut'"),
        ("metric: read_latency_mean", "metric: read_latency", 17, "unknown value 'read_latency'"),
        ("format: 1", "format: 2", 1, "newer"),
        ("repetition: repetition", "repetitions: repetition", 14, "unknown key"),
    ],
)
def test_a_fault_is_told_with_its_line(old: str, new: str, line: int, what: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(StudyError) as error:
        load_mapping(path)
    assert f"import.yaml:{line}:" in error.value.what
    assert what in error.value.what


TABLE = GOOD.replace(
    "parser: {name: ycsb}",
    "parser: {name: csv, figures: {throughput: {column: ops, unit: /s}, latency_mean: {column: mean, unit: us}}}",
)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("unit: /s", "unit: ms", "throughput cannot be in ms"),
        ("unit: us", "unit: /s", "latency_mean cannot be in /s"),
        (
            ", figures: {throughput: {column: ops, unit: /s}, latency_mean: {column: mean, unit: us}}",
            "",
            "no column contains a",
        ),
        ("name: csv", "name: csv, decimal: x", "unknown value 'x'"),
    ],
)
def test_figures_of_a_table_that_cannot_be_are_told_with_their_line(
    old: str, new: str, what: str, tmp_path: Path
) -> None:
    assert load_mapping(written(tmp_path, TABLE))
    with pytest.raises(StudyError) as error:
        load_mapping(written(tmp_path, TABLE.replace(old, new)))
    assert "import.yaml:5:" in error.value.what
    assert what in error.value.what


def test_a_key_of_another_parser_is_not_offered_for_itself(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="unknown key") as error:
        load_mapping(written(tmp_path, TABLE.replace("name: csv", "name: csv, max_error_share: 0.1")))
    assert "max_error_share" not in (error.value.hint or "")


def test_what_is_no_mapping_file_says_where_there_is_one(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="a mapping file is a mapping") as error:
        load_mapping(written(tmp_path, "- a\n"))
    assert "import.md" in (error.value.hint or "")
    with pytest.raises(StudyError, match="cannot read") as error:
        load_mapping(tmp_path / "none.yaml")
    assert "name the mapping file" in (error.value.hint or "")


def test_the_schema_takes_what_is_right_and_the_kept_one_is_up_to_date() -> None:
    validator = Draft202012Validator(IMPORT_SCHEMA.tree())
    assert [error.message for error in validator.iter_errors(tree(GOOD))] == []
    shipped = (ROOT / "studies" / "grambow-2018" / "import.yaml").read_text()
    assert [error.message for error in validator.iter_errors(tree(shipped))] == []
    assert list(validator.iter_errors(tree(GOOD.replace("ycsb", "ycbs"))))
    assert IMPORT_SCHEMA.keep(["--check", "--folder", str(ROOT / "schemas")]) is None


@pytest.mark.parametrize(
    ("pattern", "path", "parts"),
    [
        ("r-{a}_{b}.txt", "r-x_y.txt", {"a": "x", "b": "y"}),
        ("r-{a}_{b}.txt", "deep/r-x_y.txt", None),
        ("**/r-{a}.txt", "deep/er/r-x.txt", {"a": "x"}),
        ("**/r-{a}.txt", "r-x.txt", {"a": "x"}),
        ("{a}/*.txt", "x/anything.txt", {"a": "x"}),
        ("r-{a}.txt", "r-x/y.txt", None),
        ("r-{a}.txt", "r-.txt", None),
        ("r.{a}.txt", "rx1.txt", None),
    ],
)
def test_a_pattern_reads_parts_and_nothing_across_slashes(pattern: str, path: str, parts: Any) -> None:
    assert PathPattern.of(pattern).read(path) == parts


def test_a_name_that_can_be_read_in_two_ways_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r-m3_medium_1.txt").touch()
    pattern = PathPattern.of("r-{machine}_{repetition}.txt")
    with pytest.raises(StudyError, match=r"two ways: \{machine\} as 'm3' or as 'm3_medium'"):
        list(pattern.files(tmp_path))
    assert list(PathPattern.of("r-{machine}_*_{repetition}.txt").files(tmp_path))


def test_a_name_that_no_levels_read_is_not_ambiguous(tmp_path: Path) -> None:
    """It is of no run of the mapping, which leaves it out or refuses its text."""
    (tmp_path / "res-tpcc-rocks-2018-03-tables.txt").touch()
    pattern = PathPattern.of("res-{part}-{time}-{arm}.txt").deciding_by({"part": ["tpcc"], "arm": ["one", "two"]})
    ((_, parts),) = pattern.files(tmp_path)
    assert parts["arm"] not in ("one", "two")


def test_tare_explains_every_key_and_names_every_parser() -> None:
    printed = CliRunner().invoke(app, ["import", "--keys"])
    assert printed.exit_code == 0
    tree = IMPORT_SCHEMA.tree()
    of_tables = ("CsvParser", "ToolParser", "MonitorsSpec", "Quotient", "Tidy", "Wide")
    for model in (tree, *(tree["$defs"][name] for name in of_tables)):
        for key in model["properties"]:
            assert key == "name" or f"`{key}`" in printed.output, key
    for parser in PARSERS.values():
        assert parser.title in printed.output


@pytest.mark.parametrize(
    "text", ["-".join(f"{{p{n}}}" for n in range(8)) + "x", "*-" * 8 + "x", "**/" * 8 + "{a}x"]
)
def test_a_name_that_could_be_read_in_endless_ways_is_refused_at_once(text: str) -> None:
    """Found by attack: six parts and 121 characters took over 10 s, and each further part 20 times as long."""
    pattern = PathPattern.of(text + "x")
    with pytest.raises(StudyError, match=r"could be read by .* in more than 1000000 ways"):
        pattern.read("-/" * 120 + "y")
    assert pattern.read("y") is None


def test_many_parts_are_read_from_a_name_that_has_as_many() -> None:
    pattern = PathPattern.of("-".join(f"{{p{n}}}" for n in range(12)) + ".txt")
    assert pattern.read("-".join("abcdefghijkl") + ".txt") == {f"p{n}": "abcdefghijkl"[n] for n in range(12)}
