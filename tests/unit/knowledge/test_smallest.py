"""Advice on every study that comes with tare, and on three of one's own, and the smallest study that it ends in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.unit.knowledge.published import published_claims
from tests.unit.shipped import at_every_scale
from typer.testing import CliRunner

from tare.cli import app
from tare.knowledge.advice import advise
from tare.knowledge.benchmark import benchmark_of
from tare.knowledge.claim import ClaimFile
from tare.knowledge.smallest import smallest_study
from tare.plan.expand import expand
from tare.study.reading.load import load, loads
from tare.study.registry import installed

ROOT = Path(__file__).resolve().parents[3]
STUDIES = sorted((ROOT / "studies").glob("**/study.yaml"))
SCALES = [(path, scale) for path in STUDIES for scale in YAML(typ="safe").load(path).get("scales", {"full": {}})]

SYSBENCH = """
format: 1
name: mine
question: What does it cost?
sut: {image: mariadb, database: mariadb, deployment: bare, network: host}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 10}
baseline: bare
factors:
  path:
    levels:
      bare: {}
"""
YCSB = SYSBENCH.replace("image: sysbench", "image: ycsb").replace(
    "name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000,",
    'name: ycsb, core_workload: a, records: 1000, properties: {"jdbc.fetchsize": 10, "jdbc.autocommit": true},',
)
ADDRESS = "      address: {sut.deployment: container, sut.network: published-address}\n"
PORT = "      port: {sut.deployment: container, sut.network: published-loopback}\n"
HOST = "      host: {sut.deployment: container}\n"

# Written down from the claims before the answers were looked at. Two claims, of MySQL and of redis, have the
# published port of one host at -69 % and -55 %: a ranking through it needs a factor of 7100 / 2200. The host's
# network is at most -1.3 %, so the report's 30 % stand. Of a published address on one host
# only claims of other contexts tell, with an interval beyond 30 % either way.
OWN: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, str], float | None, list[str]]] = {
    "two configurations through a published port": (
        SYSBENCH + PORT,
        ("--comparing", "configurations", "--production", "bare"),
        {"ranking": "no", "production": "only if", "mixing": "no", "configurations": "with care"},
        7100 / 2200 - 1,
        [],
    ),
    "systems 50 % apart, in containers on the host's network": (
        SYSBENCH + HOST,
        ("--comparing", "systems", "--gap", "0.5", "--production", "container"),
        {"ranking": "yes", "production": "only if", "mixing": "no", "configurations": "with care"},
        0.3,
        [],
    ),
    "YCSB over an address that is known from other contexts alone": (
        YCSB + ADDRESS,
        ("--comparing", "systems", "--gap", "0.31"),
        {"ranking": "no", "production": "only if", "mixing": "no", "configurations": "with care"},
        None,
        ["address"],
    ),
}


@pytest.fixture(scope="module")
def claims() -> tuple[ClaimFile, ...]:
    return published_claims()


@pytest.mark.parametrize(
    ("path", "scale"),
    SCALES,
    ids=[f"{path.parent.relative_to(ROOT / 'studies')}-{scale}" for path, scale in SCALES],
)
def test_the_smallest_study_of_each_shipped_one_has_its_arms_and_settings(
    path: Path, scale: str, claims: tuple[ClaimFile, ...]
) -> None:
    study = at_every_scale(path)[scale]
    advice = advise(benchmark_of(study), claims)
    assert {verdict.purpose for verdict in advice.verdicts}
    wanted = advice.not_measured or advice.uncertain
    assert wanted
    small = loads(smallest_study(study, wanted, installed(), 0.02, 8), installed())
    original = {arm.name: arm.settings for arm in study.arms}
    assert {arm.name: arm.settings for arm in small.arms} == {arm.name: original[arm.name] for arm in small.arms}
    assert {small.baseline, *wanted} & set(original) == {small.baseline, *wanted}
    assert len({run.arm for run in expand(small).runs}) == len(small.arms) + 1


@pytest.mark.parametrize("name", OWN)
def test_a_study_of_one_s_own_gets_the_answers_that_the_claims_support(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tare.cli.advice.advise.every_claim", lambda _: published_claims())
    text, options, answers, gap, unknown = OWN[name]
    (tmp_path / "study.yaml").write_text(text)
    words = ["advise", str(tmp_path / "study.yaml"), "--json", "--write", str(tmp_path / "small.yaml"), *options]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.exception
    tree = json.loads(shown.stdout)
    fields = {verdict["purpose"]: verdict["answer"] for verdict in tree["verdicts"]}
    assert fields == {**answers, "repetitions": "more"}
    assert tree["gap_needed"] == pytest.approx(gap, abs=5e-3) if gap is not None else tree["gap_needed"] > 0.31
    assert tree["not_measured"] == unknown
    small, own = load(tmp_path / "small.yaml", installed()), load(tmp_path / "study.yaml", installed())
    assert small.arms[0].settings == own.arms[0].settings
    assert small.arms[1].settings == own.arms[1].settings


def test_a_machine_is_not_on_the_host_s_network(claims: tuple[ClaimFile, ...]) -> None:
    text = SYSBENCH.replace("network: host}\nclient", "network: host, limits: {memory: 1G}}\nclient")
    benchmark = benchmark_of(loads(text + "      vm: {sut.deployment: vm, sut.network: user}\n", installed()))
    (machine,) = [arm for arm in benchmark.arms if arm.setup.deployment == "vm"]
    assert (machine.setup.network, machine.baseline.network) == ("user", "host")
    assert advise(benchmark, claims).unknown == (machine.name,)
