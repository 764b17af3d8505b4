"""Every arm of a study is accounted for in the advice: by a line a metric, or by a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.knowledge.advice import Advice, advise
from tare.knowledge.advice_text import NOTHING_OPEN, lines
from tare.knowledge.advice_tree import as_tree
from tare.knowledge.benchmark import benchmark_of
from tare.knowledge.claim import ClaimFile, load_claims
from tare.study.model import Study
from tare.study.reading.load import at_every_scale, loads
from tare.study.registry import installed

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("**/study.yaml"))
STUDIES = [
    path for path in [*EXAMPLES, *sorted((ROOT / "studies").glob("**/study.yaml"))] if "plugin" not in path.parts
]

STUDY = """
format: 1
name: mine
question: What does it cost?
sut: {image: mariadb, database: mariadb, deployment: container, network: host}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 10}
"""


@pytest.fixture(scope="module")
def claims() -> tuple[ClaimFile, ...]:
    """The claims that come with tare."""
    return load_claims()


def advised(study: Study, claims: tuple[ClaimFile, ...], storage: str | None = None) -> Advice:
    return advise(benchmark_of(study, storage=storage), claims)


def shown(advice: Advice) -> list[str]:
    return [line.strip() for line in lines(advice, NOTHING_OPEN, 500)]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_each_arm_but_the_baselines_has_a_forecast(path: Path, claims: tuple[ClaimFile, ...]) -> None:
    for study in at_every_scale(path, installed()).values():
        advice = advised(study, claims)
        baselines = {study.baseline_of(arm.name) for arm in study.arms}
        planned = {arm.name for arm in study.arms if not arm.control} - baselines
        forecast = {each["arm"] for each in as_tree(advice, NOTHING_OPEN)["forecasts"]}
        assert forecast == planned


@pytest.mark.parametrize(
    ("example", "sentences"),
    [
        (
            "memory-limits",
            [f"{arm}: no claim tells what sut.limits.memory changes" for arm in ("narrow", "tight")],
        ),
        (
            "confinement",
            [
                "no-seccomp: no claim tells what sut.confinement.seccomp changes",
                "no-capabilities: no claim tells what sut.confinement.capabilities changes",
                "no-new-privileges: no claim tells what sut.confinement.no_new_privileges changes",
            ],
        ),
        (
            "cpu-limits",
            [
                "quota: no claim tells what sut.limits.cpus, sut.limits.cpu_quota changes",
                "half-quota: no claim tells what sut.limits.cpus, sut.limits.cpu_quota changes",
                "weight: no claim tells what sut.limits.cpus, sut.limits.cpu_weight changes",
            ],
        ),
    ],
)
def test_arms_that_claims_do_not_tell_of_have_a_sentence_each(
    example: str, sentences: list[str], claims: tuple[ClaimFile, ...]
) -> None:
    study = at_every_scale(ROOT / "docs" / "examples" / example / "study.yaml", installed())["full"]
    advice = advised(study, claims)
    assert [line for line in shown(advice) if "no claim tells" in line] == sentences
    assert f"Nothing is known about {', '.join(advice.unknown)}." in shown(advice)


def test_arms_with_and_without_tls_are_not_merged(claims: tuple[ClaimFile, ...]) -> None:
    factors = """
factors:
  path: {levels: {bare: {sut.deployment: bare}, bridge: {sut.network: bridge}}}
  tls: {sets: sut.tls, levels: {clear: false, tls: true}}
baseline: {path: bare, tls: clear}
"""
    text = STUDY.replace("image: sysbench", "image: tare-load").replace(
        "name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000,",
        "name: tare-load, sysbench: {script: oltp_read_only, tables: 1, table_size: 1000},",
    ).replace("threads", "connections")  # fmt: skip
    printed = shown(advised(loads(text + factors, installed()), claims))
    assert [line.partition(",")[0] for line in printed if ", throughput: " in line] == [
        "bridge-clear",
        "bridge-tls",
    ]
    assert printed.count("no claim tells what else sut.tls changes") == 1
    assert "bare-tls: no claim tells what sut.tls changes" in printed


def test_two_storages_stay_two_arms_where_containers_keep_data_elsewhere(claims: tuple[ClaimFile, ...]) -> None:
    factors = """
factors:
  data: {sets: sut.storage.kind, levels: {usual: bind, memory: tmpfs, layer: layer}}
baseline: usual
"""
    benchmark = benchmark_of(loads(STUDY + factors, installed()), storage="volume")
    assert [(arm.name, arm.setup.storage, arm.baseline.storage) for arm in benchmark.arms] == [
        ("usual", "volume", "volume"), ("memory", "tmpfs", "volume"), ("layer", "layer", "volume"),
    ]  # fmt: skip
    advice = advise(benchmark, claims)
    assert {each.arm for each in advice.forecasts} == {"memory", "layer"}


def test_a_baseline_in_a_container_is_no_arm(claims: tuple[ClaimFile, ...]) -> None:
    factors = """
factors:
  path: {levels: {host: {}, bridge: {sut.network: bridge}}}
baseline: host
"""
    advice = advised(loads(STUDY + factors, installed()), claims)
    assert {each.arm for each in advice.forecasts} == {"bridge"}


def test_arms_with_other_work_share_their_lines_which_name_them(claims: tuple[ClaimFile, ...]) -> None:
    factors = """
factors:
  path: {levels: {bare: {sut.deployment: bare}, bridge: {sut.network: bridge}}}
  threads: {sets: workload.threads, levels: [1, 2, 4]}
baseline: {path: bare}
"""
    advice = advised(loads(STUDY + factors, installed()), claims)
    printed = shown(advice)
    assert sum("bridge-threads-1, throughput: " in line for line in printed) == 1
    assert "the same of bridge-threads-2, bridge-threads-4, with other work or settings" in printed
    tree = as_tree(advice, NOTHING_OPEN)
    throughput = {each["arm"]: each["prior"] for each in tree["forecasts"] if each["metric"] == "throughput"}
    assert list(throughput) == ["bridge-threads-1", "bridge-threads-2", "bridge-threads-4"]
    assert len({str(prior) for prior in throughput.values()}) == 1
