"""`tare check`: exit codes, JUnit XML, Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from junitparser import JUnitXml
from tests.unit.analyze import synthetic
from tests.unit.report.printed import keys_of
from tests.unit.stores import known, store_of
from typer.testing import CliRunner, Result

from tare.cli import app
from tare.cli.results.check import limit
from tare.errors import StoreError, StudyError
from tare.report.check.content import CheckRequest, build_check
from tare.report.check.json_file import CheckFile
from tare.report.check.junit import render as as_junit
from tare.report.check.markdown import render as as_markdown
from tare.report.check.terminal import render as as_text
from tare.store import resume_store
from tare.store.read import open_store
from tare.store.schema import FORMAT, connect

BASE = [1000.0, 1001.0, 1000.0, 999.0, 1000.0]
AGAIN = [1001.0, 999.0, 1000.5, 999.5, 1000.2]
SMALL = [990.0, 985.0, 988.0, 991.0, 987.0]
LARGE = [700.0, 705.0, 699.0, 702.0, 701.0]
WIDE = [900.0, 1050.0, 980.0, 1010.0, 890.0]


def made(path: Path, again: Sequence[float] = AGAIN, **rates: Sequence[float]) -> Path:
    return store_of(path, known({"bare": BASE, **rates, "baseline-again": again}))


def check(path: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["check", str(path), "--max-overhead", "5%", *more])


@pytest.mark.parametrize(
    ("rates", "more", "code", "message"),
    [
        ({"host": SMALL}, (), 0, "PASS: the one overhead within 5 %."),
        ({"host": SMALL, "bridge": LARGE}, (), 1, "FAIL: 1 of 2 overheads beyond 5 %."),
        ({"host": SMALL, "bridge": LARGE}, ("--arm", "host"), 0, "PASS"),
        ({"host": WIDE, "bridge": LARGE}, (), 1, "FAIL: 1 of 2 overheads beyond 5 %, 1 of 2 inconclusive"),
        ({"host": SMALL, "bridge": WIDE}, (), 4, "INCONCLUSIVE: 1 of 2 inconclusive."),
        ({"host": SMALL, "bridge": WIDE}, ("--inconclusive", "pass"), 0, "which this check accepts"),
        ({"host": SMALL}, ("--metric", "io_per_operation"), 4, "no block has good runs of both"),
    ],
)  # fmt: skip
def test_the_exit_code_says_what_the_intervals_say(
    tmp_path: Path, rates: dict[str, list[float]], more: tuple[str, ...], code: int, message: str
) -> None:
    done = check(made(tmp_path / "store", **rates), *more)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.stdout.split())


NOISY = [1400.0, 700.0, 1300.0, 800.0, 950.0]
FAR = [100.0, 101.0, 99.0, 100.5, 100.2]


@pytest.mark.parametrize(
    ("rates", "code", "message"),
    [
        ({"host": SMALL}, 6, "TOO NOISY TO DECIDE: 1 of 1 too noisy."),
        ({"bridge": LARGE}, 6, "more than the limit"),
        ({"bridge": FAR}, 1, "FAIL: 1 of 1 overhead beyond 5 %."),
        ({"host": WIDE}, 4, "INCONCLUSIVE"),
    ],
)
def test_a_study_whose_control_could_hide_more_than_the_limit_passes_and_fails_nothing(
    tmp_path: Path, rates: dict[str, list[float]], code: int, message: str
) -> None:
    path = made(tmp_path / "store", again=NOISY, **rates)
    done = check(path, "--inconclusive", "pass")
    assert done.exit_code == (0 if code == 4 else code), done.output
    assert message in " ".join(done.stdout.split())
    if code == 6:
        tree = json.loads(check(path, "--json").stdout)
        assert (tree["valid"], tree["outcome"]) == (True, "too-noisy")
        assert "could hide " in tree["overheads"][0]["why"]
        assert 'type="too-noisy"' in as_junit(
            build_check(open_store(path).plan.study, open_store(path).records(), CheckRequest({"throughput": 0.05}))
        )


def test_an_invalid_study_fails(tmp_path: Path) -> None:
    done = check(made(tmp_path / "store", again=[1100.0, 1101.0, 1099.0, 1100.5, 1100.2], host=SMALL), "--json")
    assert done.exit_code == 1
    tree = json.loads(done.stdout)
    assert (tree["valid"], tree["outcome"], tree["overheads"][0]["outcome"]) == (False, "fail", "fail")


def test_a_store_that_a_study_still_writes_is_inconclusive(tmp_path: Path) -> None:
    rates = {"bare": BASE[:3], "host": SMALL[:3], "baseline-again": AGAIN[:3]}
    path = store_of(tmp_path / "store", known(rates))
    with resume_store(path, open_store(path).plan):
        done = check(path)
    assert done.exit_code == 4
    assert "the study has not ended: 3 blocks of at most 5 made" in " ".join(done.stdout.split())


def test_a_store_without_a_good_run_is_inconclusive(tmp_path: Path) -> None:
    failed = [synthetic.record(block, arm, None) for block in range(1, 6) for arm in ("bare", "host")]
    assert check(store_of(tmp_path / "store", failed)).exit_code == 4


def test_json_has_the_overhead_with_the_sign_of_a_report(tmp_path: Path) -> None:
    path = made(tmp_path / "store", bridge=LARGE)
    tree = json.loads(check(path, "--metric", "throughput", "--metric", "latency_mean", "--json").stdout)
    report = json.loads(CliRunner().invoke(app, ["report", str(path), "--format", "json"]).stdout)
    reported = {(each["arm"], each["metric"]): each["point"] for each in report["findings"]}
    assert [(one["metric"], one["point"]) for one in tree["overheads"]] == [
        (metric, reported["bridge", metric]) for metric in ("throughput", "latency_mean")
    ]
    throughput = tree["overheads"][0]
    assert throughput["point"] == pytest.approx(-0.2986, abs=5e-4)
    assert -0.31 < throughput["low"] < throughput["point"] < throughput["high"] < -0.29
    assert {each["max_overhead"] for each in tree["overheads"]} == {0.05}


def test_junit_has_a_suite_a_metric_and_a_case_an_arm(tmp_path: Path) -> None:
    path = made(tmp_path / "store", host=SMALL, bridge=LARGE, shared=WIDE)
    argv = ("--metric", "throughput", "--metric", "latency_mean", "--junit", str(tmp_path / "check.xml"))
    assert check(path, *argv).exit_code == 1
    whole = JUnitXml.fromfile(str(tmp_path / "check.xml"))
    assert (whole.tests, whole.failures, whole.skipped, whole.errors) == (6, 4, 0, 0)
    suites = list(whole)
    assert [suite.name for suite in suites] == [
        "Throughput: at most 5 % less", "Mean latency: at most 5 % more",
    ]  # fmt: skip
    kinds = {case.name: [each.type for each in case.result] for case in suites[0]}
    assert kinds == {"host": [], "bridge": ["overhead"], "shared": ["inconclusive"]}
    assert check(path, "--inconclusive", "pass", "--junit", str(tmp_path / "check.xml")).exit_code == 1
    assert JUnitXml.fromfile(str(tmp_path / "check.xml")).skipped == 1


def test_markdown_has_a_row_an_arm(tmp_path: Path) -> None:
    target = tmp_path / "check.md"
    check(made(tmp_path / "store", host=SMALL, bridge=LARGE), "--markdown", str(target))
    text = target.read_text(encoding="utf-8")
    assert text.startswith("### \u274c FAIL: 1 of 2 overheads beyond 5 %.")
    assert re.search(r"\| bridge \| 5 \| -29\.\d+? % \| .* \| \u274c fail \|", text)
    assert re.search(r"\| host \| 5 \| -1\.\d+? % \| .* \| \u2705 pass \|", text)


@pytest.mark.parametrize(
    ("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 7.5 % ", 0.075), ("0%", 0), ("150%", 1.5)]
)
def test_a_limit_is_a_percentage_or_a_fraction(text: str, value: float) -> None:
    assert limit(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "-5%", "five", "", "%", "nan", "inf%", "1e9", "\u202e5%", "5%%"])
def test_a_limit_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="is not a limit"):
        limit(text)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--metric", "latency_p90"), 'did you mean "latency_p'),
        (("--metric", "<script>\n"), "there is no metric <script>\ufffd"),
        (("--arm", "hst"), 'did you mean "host"?'),
        (("--arm", "bare"), "no arm bare is compared with a baseline"),
        (("--arm", "baseline-again"), "no arm baseline-again is compared"),
    ],
)
def test_what_the_study_does_not_have_is_refused(tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    error = check(made(tmp_path / "store", host=SMALL), *more).exception
    assert isinstance(error, StudyError)
    assert message in str(error)


def test_a_store_of_a_newer_tare_and_none_at_all_are_refused(tmp_path: Path) -> None:
    assert isinstance(check(tmp_path / "none").exception, StoreError)
    path = made(tmp_path / "store", host=SMALL)
    with connect(path / "store.sqlite", read_only=False).begin() as connection:
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT + 1}")
    assert "newer tare" in str(check(path).exception)


HOSTILE = "<script>alert(1)</script>\n# | \x1b[31m\u202e\x00" + "x" * 10_000


def test_hostile_names_break_no_format() -> None:
    arms = ("bare", HOSTILE, f"{HOSTILE}2")
    study = synthetic.study(arms).model_copy(update={"name": f"{HOSTILE}s"})
    made_up = build_check(
        study, synthetic.records(arms, 4), CheckRequest({"throughput": 0.05, "latency_p95": 0.05})
    )
    xml = as_junit(made_up)
    cases = [case.name for suite in JUnitXml.fromstring(xml) for case in suite]
    assert len(set(cases)) == 2
    assert len(cases) == 4
    summary, text = as_markdown(made_up), as_text(made_up, width=80)
    assert "<script>" not in summary
    assert {line.replace("\\|", "").count("|") for line in summary.splitlines() if line[:1] == "|"} == {6}
    for each in (xml, summary, text):
        assert not re.search("[\x00\x1b\u202e]", each)
        assert len(each) < 20_000
    assert max(len(line) for line in text.splitlines()) <= 80


def test_every_key_of_the_json_is_documented() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "check.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([^`]+)`", page.split("## JSON")[1]))
    assert keys_of(CheckFile) <= documented


def limited(tmp_path: Path, limits: Mapping[str, float]) -> Path:
    arms = ("bare", "host", "bridge", "baseline-again")
    study = synthetic.study(("bare", "host", "bridge"), blocks=5).model_copy(update={"max_overhead": limits})
    rates = {"bare": BASE, "host": SMALL, "bridge": LARGE, "baseline-again": AGAIN}
    return store_of(tmp_path / "store", known({arm: rates[arm] for arm in arms}), study)


def test_without_an_option_the_study_s_own_limits_hold_each_for_its_metric(tmp_path: Path) -> None:
    path = limited(tmp_path, {"throughput": 0.4, "latency_mean": 0.001})
    whole = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert whole.exit_code == 1
    rows = json.loads(whole.stdout)["overheads"]
    assert {(each["metric"], each["max_overhead"]) for each in rows} == {
        ("throughput", 0.4), ("latency_mean", 0.001)
    }  # fmt: skip
    assert CliRunner().invoke(app, ["check", str(path), "--metric", "throughput"]).exit_code == 0
    stricter = CliRunner().invoke(app, ["check", str(path), "--max-overhead", "5%"])
    assert stricter.exit_code == 1


def test_without_any_limit_it_says_where_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no limit to check") as refused:
        CliRunner().invoke(app, ["check", str(made(tmp_path / "store", host=SMALL))], catch_exceptions=False)
    assert "max_overhead" in str(refused.value.hint)
