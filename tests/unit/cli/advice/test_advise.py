"""`tare advise` for a study; the study that it writes loads and can be planned."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.knowledge.smallest import rounds_of
from tare.plan.expand import expand
from tare.study.reading.load import load
from tare.study.registry import installed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("study", "arms"),
    [
        ("percona-2016", {"bare", "published-address"}),
        ("casalicchio-2017/cpu", {"bare-p16000-t1-free", "container-p16000-t1-free"}),
        ("casalicchio-2017/fileio", {"bare-files-16G", "container-files-16G"}),
        (
            "grambow-2018/study.yaml",
            {
                f"{setup}-m3.medium-t10-STCS-kc0"
                for setup in ("bare-bare", "docker-bare", "bare-docker", "docker-docker")
            },
        ),
        ("bth-thesis", {"bare-mixed-full", "container-mixed-full"}),
    ],
)
def test_the_smallest_study_holds_the_arms_in_question_and_can_be_planned(
    study: str, arms: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    path = Path("studies") / study
    path = path if path.suffix else path / "study.yaml"
    shown = CliRunner().invoke(app, ["advise", str(path), "--write", str(file)])
    assert shown.exit_code == 0, shown.exception
    assert str(file) in shown.stdout
    assert "rounds for" in shown.stdout
    small = load(file, installed())
    assert {arm.name for arm in small.arms} == arms
    assert len(expand(small).runs) == small.protocol.blocks * (len(arms) + 1)
    original = {arm.name: arm for arm in load(path, installed()).arms}
    assert all(arm.settings == original[arm.name].settings for arm in small.arms)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text("my own words")
    result = CliRunner().invoke(app, ["advise", "percona-2016", "--write", str(file)])
    assert isinstance(result.exception, StudyError)
    assert file.read_text() == "my own words"


@pytest.mark.parametrize("width", [80, 120])
def test_lines_are_as_wide_as_the_terminal_and_no_wider(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = CliRunner().invoke(app, ["advise", "percona-2016", "--scale", "demo"])
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > width - 20
    (first,) = [n for n, line in enumerate(lines) if line.startswith("  ranking        no         cannot rank")]
    assert len(lines[first + 1]) - len(lines[first + 1].lstrip()) == 28


def test_where_a_machine_was_weighed_it_says_how_to_predict_from_that(tmp_path: Path) -> None:
    words = "With --profile STORE, a store with bare runs, tare also predicts each arm from them."
    shown = [" ".join(CliRunner().invoke(app, ["advise", "percona-2016"]).stdout.split())]
    (tmp_path / "home" / "unit-costs").mkdir(parents=True)
    shown += [" ".join(CliRunner().invoke(app, ["advise", "percona-2016"]).stdout.split())]
    assert [words in text for text in shown] == [False, True]


def test_json_has_all_of_it() -> None:
    shown = CliRunner().invoke(
        app, ["advise", "percona-2016", "--json", "--comparing", "absolute", "--production", "container"]
    )
    tree = json.loads(shown.stdout)
    assert tree["headline"] == "production"
    assert [each["purpose"] for each in tree["verdicts"]] == [
        "ranking", "production", "mixing", "configurations", "repetitions",
    ]  # fmt: skip
    (port,) = [each for each in tree["forecasts"] if each["arm"] == "published-loopback"]
    assert port["published"]["range"] == [pytest.approx(-0.69, abs=2e-3), pytest.approx(-0.69, abs=2e-3)]
    assert port["range"] == [pytest.approx(-0.554, abs=2e-3), pytest.approx(-0.554, abs=2e-3)]
    assert port["pooled"] is None
    assert (tree["unknown"], tree["not_measured"]) == ([], ["published-address"])
    (address,) = [each for each in tree["forecasts"] if each["arm"] == "published-address"]
    low, high = address["prior"]["interval"]
    assert low < address["prior"]["point"] < high
    assert all(each["differs_in"] for each in address["prior"]["nearest"])
    assert tree["rounds"]["blocks"] >= 8


PODS = """
format: 1
name: runtimes
question: Does another runtime cost anything?
sut: {image: postgresql-15, database: postgresql, deployment: container, network: host}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 10}
baseline: docker
factors:
  engine:
    levels:
      docker: {}
      crun: {sut.runtime: crun}
"""
PAIR = """
format: 1
study: STUDY
says: "It changed."
context:
  database: {name: postgresql}
  load: {workload: any}
  arm: {deployment: container, network: host, engine: docker, runtime: crun}
  baseline: {deployment: container, network: host, engine: docker, runtime: runc}
effect: {kind: range, metric: throughput, low: LOW, high: HIGH, printed: "x"}
how: {statistic: range, parity: unknown}
source: {title: A, url: "https://example.org/", where: x, read: whole}
"""


def disputed_pair() -> dict[str, str]:
    """Id → the file of a claim: two that contradict each other about the arm of PODS."""
    ends = {"faster": ("0.14", "0.39"), "the-same": ("-0.03", "0.03")}
    return {
        name: PAIR.replace("STUDY", name).replace("LOW", low).replace("HIGH", high).lstrip()
        for name, (low, high) in ends.items()
    }


def test_claims_that_contradict_each_other_are_shown_and_the_study_that_decides_is_written(tmp_path: Path) -> None:
    claims, study, file = tmp_path / "claims", tmp_path / "study.yaml", tmp_path / "try.yaml"
    claims.mkdir()
    study.write_text(PODS)
    for name, text in disputed_pair().items():
        (claims / f"{name}.yaml").write_text(text)
    shown = CliRunner().invoke(app, ["advise", str(study), "--claims", str(claims), "--try", str(file)])
    assert shown.exit_code == 0, shown.exception
    assert "disputed: faster, throughput x against the-same, throughput x" in " ".join(shown.stdout.split())
    assert {arm.name for arm in load(file, installed()).arms} == {"docker", "crun"}


def test_where_no_claims_contradict_each_other_there_is_nothing_to_try(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["advise", "percona-2016", "--try", str(tmp_path / "try.yaml")])
    assert "no two claims about these arms contradict each other" in str(shown.exception)
    assert not (tmp_path / "try.yaml").exists()


def test_another_host_for_the_client_makes_other_claims_comparable() -> None:
    tree = json.loads(
        CliRunner().invoke(app, ["advise", "percona-2016", "--json", "--client-host", "other"]).stdout
    )
    (address,) = [each for each in tree["forecasts"] if each["arm"] == "published-address"]
    assert address["comparable"] == ["moby-11911-remote-client"]


def test_rounds_grow_with_the_spread() -> None:
    plan = expand(load(Path("studies/percona-2016/study.yaml"), installed(), "demo"))
    calm, wild = rounds_of(plan, 0.02, 0.005), rounds_of(plan, 0.02, 0.05)
    assert calm.blocks == 8
    assert wild.blocks > calm.blocks
    assert wild.seconds is not None
    assert calm.seconds is not None
    assert wild.seconds > calm.seconds
    assert "calibration" in wild.spread_from


def test_more_rounds_than_a_study_may_have_are_not_called_enough() -> None:
    plan = expand(load(Path("studies/percona-2016/study.yaml"), installed(), "demo"))
    calm, hopeless = rounds_of(plan, 0.02, 0.005), rounds_of(plan, 0.001, 0.5)
    assert calm.enough
    assert not hopeless.enough
    assert hopeless.seconds is not None
    assert hopeless.seconds > 100 * (calm.seconds or 0)


@pytest.mark.parametrize(
    ("storage", "hint"), [("volumee", "volume"), ("foo bar", "storages: "), ("none", "storages: ")]
)
def test_a_storage_that_nobody_knows_is_refused_with_those_that_are_known(storage: str, hint: str) -> None:
    result = CliRunner().invoke(app, ["advise", "percona-2016", "--storage", storage])
    assert isinstance(result.exception, StudyError)
    assert hint in str(result.exception)


def test_machine_time_is_told_in_hours_and_no_line_ends_within_a_figure() -> None:
    shown = CliRunner().invoke(app, ["advise", "grambow-2018", "--storage", "layer", "--client-host", "other"])
    assert re.search(r"about \d+ h \d+ min of machine time", shown.stdout)
    assert "[+1.5 %, +6.0 %]" in " ".join(shown.stdout.split())
    assert not [line for line in shown.stdout.splitlines() if line.lstrip().startswith("%") or line.endswith("±")]
