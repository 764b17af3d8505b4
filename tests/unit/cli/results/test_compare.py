"""`tare compare`: what differs comes first, then what has changed, by intervals."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.report.printed import keys_of
from tests.unit.stores import known, store_of
from typer.testing import CliRunner, Result

from tare.analyze.comparison import Recorded, compare
from tare.cli import app
from tare.errors import NotComparable, StoreError, StudyError
from tare.plan.expand import expand
from tare.record.run_record import RunRecord
from tare.report.comparison import json_file, markdown, terminal
from tare.report.comparison.content import Compared, Side, build_comparison
from tare.store import open_store, resume_store
from tare.store.schema import FORMAT, connect
from tare.study.model import Study
from tare.study.protocol_spec import FixedSpec

BARE = [1000.0, 1010.0, 990.0, 1005.0, 995.0]
AGAIN = [1001.0, 1008.0, 991.0, 1006.0, 994.0]
HOST = [998.0, 1009.0, 986.0, 1004.0, 992.0]
BRIDGE = [900.0, 912.0, 888.0, 906.0, 894.0]
WORSE = [800.0, 810.0, 789.0, 806.0, 793.0]


def rates(
    bridge: Sequence[float], again: Sequence[float] = AGAIN, factor: float = 1.0
) -> Mapping[str, list[float]]:
    arms = {"bare": BARE, "host": HOST, "bridge": bridge, "baseline-again": again}
    return {name: [factor * each for each in values] for name, values in arms.items()}


def elsewhere(record: RunRecord) -> RunRecord:
    """On another machine under a newer engine."""

    def change(tree: dict[str, Any]) -> None:
        tree["host"].update(cpu_model="Another CPU", uptime_s=17.0 + record.index)
        tree["engine"].update(engine_version="28.1")
        tree["images"]["sut"].update(digest="sha256:" + "99" * 32)
        tree["effective"].update(version="11.4")

    return synthetic.changed(record, change)


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("a") / "store", known(rates(BRIDGE)))


@pytest.fixture(scope="module")
def b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = [elsewhere(each) for each in known(rates(WORSE, factor=3.0))]
    return store_of(tmp_path_factory.mktemp("b") / "store", made)


def run(*argv: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, argv)])


def side(label: str, study: Study, records: Sequence[RunRecord]) -> Side:
    return Side(label, f"store-{label}", study, tuple(records), None, "0.1.0")


def compared(one: Sequence[RunRecord], other: Sequence[RunRecord], study: Study | None = None) -> Compared:
    plan = expand(synthetic.study(("bare", "host", "bridge")) if study is None else study)
    result = compare(Recorded(plan, one), Recorded(plan, other))
    return build_comparison(side("A", plan.study, one), side("B", plan.study, other), result)


def test_json_has_both_overheads_and_their_difference(a: Path, b: Path) -> None:
    done = run(a, b, "--format", "json")
    assert done.exit_code == 0, done.output
    tree = json.loads(done.stdout)
    by_arm = {each["arm"]: each for each in tree["changes"] if each["metric"] == "throughput"}
    assert set(by_arm) == {"host", "bridge"}
    logs = [
        sum(math.log(value / base) for value, base in zip(values, BARE, strict=True)) / 5
        for values in (BRIDGE, WORSE)
    ]
    bridge = by_arm["bridge"]
    assert bridge["a"]["point"] == pytest.approx(math.exp(logs[0]) - 1)
    assert bridge["b"]["point"] == pytest.approx(math.exp(logs[1]) - 1)
    assert bridge["difference"]["point"] == pytest.approx(math.exp(logs[1] - logs[0]) - 1)
    assert bridge["changed"]
    assert bridge["family"] == 2
    assert not by_arm["host"]["changed"]
    assert [each["b"] / each["a"] for each in tree["absolutes"] if each["arm"] == "bare"] == [pytest.approx(3)]


def test_p_values_are_adjusted_by_holm_over_the_arms(a: Path, b: Path) -> None:
    result = compared(open_store(a).records(), open_store(b).records()).comparison
    raw = {each.arm: each.difference.p_zero for each in result.changes if each.metric == "throughput"}
    p_zero = {each.arm: each.p_zero for each in result.changes if each.metric == "throughput"}
    assert raw["bridge"] is not None
    assert raw["host"] is not None
    assert p_zero["bridge"] == pytest.approx(min(1, 2 * raw["bridge"]))
    assert p_zero["host"] == pytest.approx(max(raw["host"], 2 * raw["bridge"]))
    latency = [each for each in result.changes if each.metric == "latency_mean"]
    assert {each.family for each in latency} == {len([each for each in result.changes if each.metric != "throughput"
                                                      and each.difference.p_zero is not None])}  # fmt: skip


def test_what_differs_is_named_before_any_figure(a: Path, b: Path) -> None:
    text = run(a, b).stdout
    first, rest = text.split("Overhead: throughput")
    for difference in ("Another CPU", "engine_version", "28.1", "sut.digest", "11.4", "10.11.6-MariaDB"):
        assert difference in first.replace("\n", " ") or difference in "".join(first.split())
    assert "uptime_s" not in first
    assert "The throughput overhead has changed" in " ".join(first.split())
    assert "bridge" in rest
    assert "Absolute figures apply only to the machine" in " ".join(rest.split())


def test_stores_of_alike_runs_differ_in_nothing(a: Path) -> None:
    result = compared(open_store(a).records(), open_store(a).records())
    assert result.unlike == ()
    assert "No recorded difference" in terminal.render(result)
    assert not any(each.changed for each in result.comparison.changes)
    assert "No change of the throughput overhead was shown in 2 arms; changes up to" in result.answer


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_wider_than_the_terminal(a: Path, b: Path, width: int) -> None:
    text = terminal.render(compared(open_store(a).records(), open_store(b).records()), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert re.search(r"bridge .*changed", text)


def test_another_study_ends_with_5(a: Path, tmp_path: Path) -> None:
    other = synthetic.study(("bare", "host", "bridge")).model_copy(update={"scale": "full"})
    error = run(a, store_of(tmp_path / "store", [], other)).exception
    assert isinstance(error, NotComparable)
    assert error.exit_code == 5
    assert "scale is demo in A and full in B" in str(error)


def test_a_store_and_a_copy_of_it_are_not_independent(a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "copy")
    for other in (a, tmp_path / "copy"):
        error = run(a, other).exception
        assert isinstance(error, StudyError)
        assert "the same store" in str(error)


def test_an_invalid_study_is_compared_without_a_verdict_and_ends_with_1(a: Path, tmp_path: Path) -> None:
    made = known(rates(WORSE, again=[1.1 * each for each in AGAIN]))
    done = run(a, store_of(tmp_path / "store", made))
    assert done.exit_code == 1
    assert "B. INVALID (control-differs)" in done.stdout
    assert "No verdict, since the control of B differs" in " ".join(done.stdout.split())


def test_a_store_in_use_and_one_without_a_good_run_are_told(a: Path, tmp_path: Path) -> None:
    failed = [synthetic.record(block, arm, None) for block in (1, 2) for arm in ("bare", "host", "bridge")]
    path = store_of(tmp_path / "store", failed)
    with resume_store(path, open_store(path).plan):
        done = run(a, path)
    assert done.exit_code == 1
    text = " ".join(done.stdout.split())
    assert "Throughput cannot be compared" in text
    assert "B: the study has not ended" in text
    assert "Its figures may still change" in text


def test_a_store_of_a_newer_tare_is_refused(a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "copy")
    with connect(tmp_path / "copy" / "store.sqlite", read_only=False).begin() as connection:
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT + 1}")
    error = run(a, tmp_path / "copy").exception
    assert isinstance(error, StoreError)
    assert "newer tare" in str(error)


def test_intervals_that_do_not_hold_change_nothing() -> None:
    study = synthetic.study(("bare", "host", "bridge")).model_copy(update={"protocol": FixedSpec(name="fixed")})
    result = compared(known(rates(BRIDGE)), known(rates(WORSE)), study)
    assert not any(each.changed for each in result.comparison.changes)
    assert "published method" in result.answer


def test_bytes_that_were_counted_by_another_source_are_not_compared() -> None:
    def counted(by: str) -> list[RunRecord]:
        usage = {"sut_read_bytes": 1e6, "sut_write_bytes": 1e6, "sut_io_source": by}
        made = known(rates(BRIDGE))
        return [synthetic.changed(each, lambda tree: tree["usage"].update(usage)) for each in made]

    change = compared(counted("control group"), counted("BFQ")).comparison.change("bridge", "io_per_operation")
    assert change.difference.estimate.point is None
    assert change.difference.estimate.why == "counted by control group in A and by BFQ in B"


HOSTILE = "<script>alert(1)</script>\n# | \x1b[31m\u202e" + "x" * 10_000


def test_hostile_names_break_no_format() -> None:
    arms = ("bare", HOSTILE, f"{HOSTILE}2")
    study = synthetic.study(arms)
    one, other = (synthetic.records(arms, 4, seed=seed) for seed in (1, 2))
    hostile = [synthetic.changed(each, lambda tree: tree["host"].update(cpu_model=HOSTILE)) for each in other]
    result = compared(one, hostile, study)
    assert json.loads(json_file.render(result))["changes"][0]["arm"] == HOSTILE
    for text in (terminal.render(result, width=80), markdown.render(result)):
        assert not re.search("[\x1b\u202e]", text)
        assert len(text) < 30_000
    assert "<script>" not in markdown.render(result)
    assert max(len(line) for line in terminal.render(result, width=80).splitlines()) <= 80


def test_markdown_has_a_table_a_metric(a: Path, b: Path) -> None:
    text = markdown.render(compared(open_store(a).records(), open_store(b).records()))
    assert "## Overhead: throughput" in text
    assert "## Overhead: mean latency" in text
    assert re.search(r"\| bridge \| 5, 5 \| -10\.\d+ % .* \| changed \|", text)
    for table in text.split("\n\n"):
        rows = [line.replace("\\|", "").count("|") for line in table.splitlines() if line.startswith("|")]
        assert len(set(rows)) <= 1


def test_every_key_of_the_json_is_documented() -> None:
    reference = Path(__file__).resolve().parents[4] / "docs" / "reference"
    pages = [(reference / name).read_text(encoding="utf-8") for name in ("compare.md", "check.md")]
    documented = {key for page in pages for key in re.findall(r"`([^`]+)`", page.split("## JSON")[1])}
    keys = keys_of(json_file.ComparisonFile)
    assert {"difference", "unit", "group", "max_worse", "estimator"} < keys
    assert keys <= documented


@pytest.mark.parametrize(
    ("most", "code", "word"), [("3%", 1, "FAIL"), ("11.16%", 4, "INCONCLUSIVE"), ("15%", 0, "PASS")]
)
def test_the_gate_fails_where_an_arm_became_worse_by_more(
    a: Path, b: Path, most: str, code: int, word: str
) -> None:
    done = run(a, b, "--fail-on", most)
    assert done.exit_code == code
    assert (
        f"{word}: {2 if code == 0 else 1} of 2 changes from A to B are at most {most[:-1]} % worse." in done.stdout
    )


def test_the_gate_says_which_arm_and_by_how_much(a: Path, b: Path) -> None:
    done = run(a, b, "--fail-on", "3%", "--format", "json")
    assert done.exit_code == 1
    gate = json.loads(done.stdout)["gate"]
    assert (gate["outcome"], gate["max_worse"]) == ("fail", 0.03)
    bridge = next(each for each in gate["changes"] if each["arm"] == "bridge")
    assert bridge["low"] < 799.6 / 900 - 1 < bridge["high"]  # the means of WORSE and BRIDGE
    assert bridge["high"] < -0.03


def test_what_became_better_passes_the_gate(a: Path, b: Path) -> None:
    assert run(b, a, "--fail-on", "3%").exit_code == 0


def test_a_control_that_could_hide_more_than_the_limit_decides_nothing(a: Path, tmp_path: Path) -> None:
    wide = [1000.0, 1100.0, 900.0, 1050.0, 950.0]
    noisy = store_of(tmp_path / "store", known(rates(BRIDGE, again=wide)))
    assert run(a, noisy, "--fail-on", "3%").exit_code == 6


def test_the_gate_refuses_a_metric_that_no_store_has(a: Path, b: Path) -> None:
    with pytest.raises(StudyError, match="do not both have a metric 'througput'"):
        CliRunner().invoke(
            app, ["compare", str(a), str(b), "--fail-on", "3%", "--metric", "througput"], catch_exceptions=False
        )
