"""A replay's arms have exactly the figures that its source published of them, however tare deploys them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.shipped import shipped

from tare.knowledge.advice import Purpose, advise
from tare.knowledge.advice_text import NOTHING_OPEN, lines
from tare.knowledge.benchmark import benchmark_of
from tare.knowledge.claim import ClaimFile, Qualitative, load_claims
from tare.knowledge.forecast import replayed
from tare.study.model import Study

GRAMBOW = {
    f"{client}-{sut}-m3.{machine}-t{threads}-{compaction}-{cache}": {
        f"grambow-2018-m3-{machine}-{of}-{metric}-{setup}"
        for of, metrics in ((f"t{threads}", ("read", "update", "throughput")), ("avg", ("read", "update")))
        for metric in metrics
    }
    for client, sut, setup in (("docker", "bare", "ii"), ("bare", "docker", "iii"), ("docker", "docker", "iv"))
    for machine, counts in (("medium", (10, 25, 50)), ("large", (30, 75, 150)))
    for threads in counts
    for compaction in ("STCS", "TWCS", "LCS")
    for cache in ("kc0", "auto")
}
PERCONA = {
    "host": "host", "bridge": "bridge", "published-loopback": "published-port", "shared": "shared"
}  # fmt: skip
CPU = {"casalicchio-2017-cpu-high", "casalicchio-2017-cpu-medium", "casalicchio-2017-execution-time"}
EXPECTED: Mapping[str, Mapping[str, set[str]]] = {
    "grambow-2018": GRAMBOW,
    "percona-2016": {arm: {f"percona-2016-{claim}"} for arm, claim in PERCONA.items()},
    "casalicchio-2017/cpu": {
        f"container-p{primes}-t{threads}-free": CPU
        for primes in (16000, 32000, 64000, 128000)
        for threads in (1, 2, 4, 6)
    },
    "casalicchio-2017/fileio": {
        f"container-files-{size}G": {"casalicchio-2017-disk-read", "casalicchio-2017-disk-write"}
        for size in (16, 32, 64, 128)
    },
    "seybold-2018": {},  # its figures are against VM-L, where this study's baseline is bare
    "seybold-2018/machines": {
        f"VM-C-H-{load}-heavy-10G": {f"seybold-2018-vm-container-{load}-heavy"} for load in ("write", "read")
    },
    "bth-thesis": {},  # its figures could not be read
}


@pytest.fixture(scope="module")
def claims() -> tuple[ClaimFile, ...]:
    """The claims that come with tare."""
    return load_claims()


def arms_of(study: Study) -> list[str]:
    return [arm.name for arm in study.arms if not arm.control]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_arm_has_the_figures_of_its_source_and_no_others(name: str, claims: tuple[ClaimFile, ...]) -> None:
    study = shipped(name)
    benchmark = benchmark_of(study)
    own = {arm: {known.id for known in replayed(benchmark, arm, claims)} for arm in arms_of(study)}
    assert {arm: ids for arm, ids in own.items() if ids} == EXPECTED[name]


def test_each_figure_of_a_replayed_source_is_some_arm_s(claims: tuple[ClaimFile, ...]) -> None:
    sources = {name.partition("/")[0] for name in EXPECTED}
    with_figures = {
        known.id for known in claims if known.study in sources and not isinstance(known.claim.effect, Qualitative)
    }
    assert with_figures == {claim for arms in EXPECTED.values() for ids in arms.values() for claim in ids}


def test_a_replay_is_advised_from_its_source_first(claims: tuple[ClaimFile, ...]) -> None:
    advice = advise(benchmark_of(shipped("grambow-2018")), claims)
    assert advice.not_measured == ()
    (ranking,) = [each for each in advice.verdicts if each.purpose is Purpose.RANKING]
    assert ranking.because == "alternatives must differ by more than 30 %"
    text = "\n".join(lines(advice, NOTHING_OPEN, 400))
    assert "docker-bare-m3.medium-t10-STCS-kc0, read_latency_mean, as published: +1.4 %" in text
    assert "claims from other contexts" not in text


def test_a_figure_against_another_baseline_is_near_and_predicts_nothing(claims: tuple[ClaimFile, ...]) -> None:
    advice = advise(benchmark_of(shipped("seybold-2018")), claims)
    machine = next(each for each in advice.forecasts if each.arm.startswith("VM-C-H"))
    assert {near.claim.id for near in machine.near if near.differs_in == ("baseline",)} == {
        "seybold-2018-vm-container-read-heavy", "seybold-2018-vm-container-write-heavy"
    }  # fmt: skip
    assert machine.nothing_known


def test_a_pod_is_predicted_against_bare_as_a_container_and_against_a_container_as_a_pod(
    claims: tuple[ClaimFile, ...],
) -> None:
    cluster = benchmark_of(shipped("postgresql-paths/cluster"))
    pods = [each for each in advise(cluster, claims).forecasts if each.arm.startswith(("pod", "service"))]
    assert {each.arm for each in pods if each.prior is not None} == {"pod-host-read", "pod-read", "service-read"}
    docker = next(arm.setup for arm in cluster.arms if arm.name.startswith("docker-bridge"))
    beside = [replace(arm, baseline=docker) for arm in cluster.arms if arm.name.startswith("pod-read")]
    (pod,) = advise(replace(cluster, arms=tuple(beside)), claims).forecasts
    assert pod.prior is not None
    assert {each.claim.study for each in pod.prior.nearest} == {"postgres-benchmarks"}


def test_where_a_large_effect_may_hit_one_system_it_says_that_nothing_can_be_ranked(
    claims: tuple[ClaimFile, ...],
) -> None:
    advice = advise(benchmark_of(shipped("percona-2016")), claims)
    (ranking,) = [each for each in advice.verdicts if each.purpose is Purpose.RANKING]
    assert ranking.because == "cannot rank: published-loopback may change one system (up to -69 %) and not another"
    assert all("223 %" not in line for line in lines(advice, NOTHING_OPEN, 400))
