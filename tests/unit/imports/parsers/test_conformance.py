"""What every parser keeps, on every report in tests/data/imports and on damaged ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import get_args

import pytest

from tare.analyze.validity.distortions import DISTORTIONS
from tare.imports.contents import text_of
from tare.imports.mapping import ToolParser
from tare.imports.parsers.figures import plausible
from tare.imports.parsers.registry import PARSERS
from tare.imports.reading import read_reports
from tare.record.run_record import to_tree

DATA = Path(__file__).parents[3] / "data"
FILES = [
    *((path.parent.name, path) for path in sorted((DATA / "imports").glob("*/*")) if path.suffix != ".report"),
    *(
        (tool, path)
        for tool in ("ycsb", "cassandra-stress", "sysbench", "fio")
        for path in sorted(DATA.glob(f"{tool}/*.stdout"))
    ),
]
LOGS = {"transactions.log", "sample.log", "intervals.log", "intervals-rate.log"}
"""Each line of them counts: a part has other figures than the whole."""

every_file = pytest.mark.parametrize(("name", "path"), FILES, ids=lambda each: getattr(each, "name", each))


def text(path: Path) -> str:
    read = text_of(path.read_bytes())
    assert read is not None
    return read


def test_a_mapping_can_name_every_parser() -> None:
    assert set(get_args(ToolParser.model_fields["name"].annotation)) == set(PARSERS)
    assert {name for name, _ in FILES} == set(PARSERS)


@every_file
def test_a_report_has_figures_or_a_reason_and_says_what_the_parser_promises(name: str, path: Path) -> None:
    parser = PARSERS[name]
    reports = list(parser.reports(text(path), 0.0))
    assert reports
    for report in reports:
        assert (report.measurement is None) != (report.failure is None)
        assert set(report.says) <= set(parser.says)
        assert all(each.strip() for each in report.says.values())
        assert set(report.distortions) <= set(DISTORTIONS)
        assert 1 <= report.line <= len(text(path).split("\n"))
        if report.measurement is not None:
            assert report.measurement.throughput_per_s is None or report.measurement.throughput_per_s > 0
            plausible(report.measurement)
            to_tree(report.measurement)  # raises if a number is not finite


@every_file
def test_only_its_own_parser_recognises_a_report(name: str, path: Path) -> None:
    recognising = [other for other, parser in PARSERS.items() if parser.recognises(text(path))]
    good = any(report.measurement is not None for report in PARSERS[name].reports(text(path), 1.0))
    assert recognising == [name] or (not good and recognising == [])


@every_file
def test_a_report_that_is_cut_short_gives_no_other_figures(name: str, path: Path) -> None:
    whole = text(path)
    if path.name in LOGS:
        pytest.skip("a log has no end that shows that it is whole")

    def rates(part: str) -> list[float | None]:
        measured = [report.measurement for report in PARSERS[name].reports(part, 1.0)]
        return [each.throughput_per_s for each in measured if each is not None]

    lines = whole.split("\n")
    for end in range(0, len(lines), 1 + len(lines) // 40):
        assert set(rates("\n".join(lines[:end]))) <= set(rates(whole)), f"{end} lines"


@every_file
def test_damage_ends_in_a_reason(name: str, path: Path) -> None:
    chance, whole = Random(path.name), text(path)
    for _ in range(30):
        at, length = chance.randrange(len(whole) + 1), chance.randrange(40)
        damaged = (
            whole[:at]
            + chance.choice(["", "\n", "9" * 20, "-", "nan", "\x00", "{", "=" * 8])
            + whole[at + length :]
        )
        for report in read_reports(damaged, PARSERS[name], name, chance.choice([0.0, 1.0])):
            assert (report.measurement is None) != (report.failure is None)


@pytest.mark.parametrize(
    "content",
    [
        "3;docker;16;100;1;2;3;4;5;6;7;8;9;10\n" * 4,
        "TEST RESULT: 12 passed\n",
        "run,tps\n1,100\n",
        "1700000000 1 2\n",
        '{"Throughput": 12}',
    ],
)
def test_no_parser_takes_what_only_looks_like_its_tool(content: str) -> None:
    assert [name for name, parser in PARSERS.items() if parser.recognises(content)] == []


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "content", ["x", "{}", "[]", "null", '{"jobs": 1, "fio version": 2}', "\n\n", "progress: x\n" * 3]
)
def test_what_is_no_report_of_the_tool_is_one_failed_report(name: str, content: str) -> None:
    reports = list(PARSERS[name].reports(content, 0.0))
    assert [report.measurement for report in reports] == [None]
