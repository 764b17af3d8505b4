"""What `tare advise` must answer: written down from the claims before there was code that answers.

Each row: the benchmark, and per purpose the answer that its claims support. The threshold for ranking is the larger
of the report's 30 % and of what the largest plausible effect of a planned arm would make of no difference at all.
Rows "as shipped" came with their studies, which tare runs otherwise than the publications did.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from tests.unit.knowledge.published import published_claims
from tests.unit.shipped import shipped as study_of

from tare.knowledge.advice import Advice, Purpose, advise
from tare.knowledge.advice_text import NOTHING_OPEN, lines
from tare.knowledge.benchmark import Benchmark, Comparing, PlannedArm, benchmark_of
from tare.knowledge.claim import ClaimFile, DeploymentName, Setup, load_claims

BARE = Setup(deployment="bare", client="bare", network="host", storage="host", engine="none", runtime="none")
DOCKER = {"engine": "docker", "runtime": "runc"}


def setup(deployment: str, network: str | None, storage: str | None, client: str = "bare") -> Setup:
    return Setup.model_validate(
        {"deployment": deployment, "client": client, "network": network, "storage": storage, **DOCKER}
    )


def planned(name: str, of: Setup, host: str = "same", baseline: Setup = BARE) -> PlannedArm:
    return PlannedArm(name, of, baseline, host)


def shipped(name: str) -> Benchmark:
    return benchmark_of(study_of(name))


GRAMBOW = Benchmark(
    name="grambow-2018",
    database="cassandra",
    arms=(
        planned("I", BARE, "other"),
        planned("II", BARE.model_copy(update={"client": "container", "network": "client-nat", **DOCKER}), "other"),
        planned("III", setup("container", "published-address", "layer"), "other"),
        planned("IV", setup("container", "published-address-client-nat", "layer", "container"), "other"),
    ),
)
VM = setup("vm", None, "host").model_copy(update={"engine": "none", "runtime": "none", "client": None})
SEYBOLD = Benchmark(
    name="seybold-2018",
    database="mongodb",
    arms=(
        planned("VM-L", VM, "other", VM),
        planned("VM-C-H", setup("vm-container", "host", "bind"), "other", VM),
    ),
)
BTH = Benchmark(
    name="bth-thesis",
    database="cassandra",
    arms=(planned("bare", BARE, "other"), planned("docker", setup("container", "host", "bind"), "other")),
)
REDIS = Benchmark(
    name="two-caches",
    database="redis",
    arms=(planned("cache", setup("container", "published-loopback", "bind")),),
    comparing=Comparing.SYSTEMS,
    production="container",
    gap=0.15,
)
SLA = replace(GRAMBOW, name="sla", arms=GRAMBOW.arms[2:3], comparing=Comparing.ABSOLUTE, production="bare")
UPGRADE = Benchmark(
    name="upgrade",
    database="mariadb",
    arms=(planned("bare", BARE),),
    comparing=Comparing.VERSIONS,
    production="bare",
)


@dataclass(frozen=True)
class Expected:
    ranking: str
    production: str
    mixing: str
    configurations: str
    repetitions: str
    headline: Purpose | None
    gap: float | None
    """Above which a ranking can be kept; `None`: nothing is dockerized."""
    unknown: tuple[str, ...]
    """Arms of which no claim is comparable."""


PUBLISHED_PORT = 7100 / 2200 - 1


EXPECTED: Mapping[str, tuple[Benchmark | str, Expected]] = {
    "percona-2016": (
        "percona-2016",
        Expected("no", "only if", "no", "with care", "more", None, PUBLISHED_PORT, ("published-address",)),
    ),
    "casalicchio-2017/cpu": (
        "casalicchio-2017/cpu",
        Expected("no", "only if", "no", "with care", "more", None, 2.7, ()),
    ),
    "casalicchio-2017/fileio": (
        "casalicchio-2017/fileio",
        Expected("only if", "only if", "no", "with care", "more", None, 0.3, ()),
    ),
    "grambow-2018": (
        GRAMBOW,
        Expected("only if", "only if", "no", "with care", "more", None, 0.3, ()),
    ),
    "seybold-2018": (
        SEYBOLD,
        Expected("only if", "only if", "no", "with care", "more", None, 0.3, ()),
    ),
    "bth-thesis": (
        BTH,
        Expected("no", "only if", "no", "with care", "more", None, 0.3, ("docker",)),
    ),
    "grambow-2018 as shipped: the very arms of the publication": (
        "grambow-2018",
        Expected("only if", "only if", "no", "with care", "more", None, 0.3, ()),
    ),
    "seybold-2018 as shipped: against bare, where the paper's figures are against a machine": (
        "seybold-2018",
        Expected(
            "only if",
            "only if",
            "no",
            "with care",
            "more",
            None,
            0.3,
            tuple(f"{model}-write-heavy-10G-mariadb" for model in ("VM-L", "VM-C-H", "VM-C-L")),
        ),
    ),
    "bth-thesis as shipped: one container, of which redis on one host tells": (
        "bth-thesis",
        Expected("only if", "only if", "no", "with care", "more", None, 0.3, ()),
    ),
    "two caches through published ports, 15 % apart": (
        REDIS,
        Expected("no", "yes", "no", "with care", "more", Purpose.RANKING, PUBLISHED_PORT, ()),
    ),
    "figures for a bare production, from containers": (
        SLA,
        Expected("only if", "no", "no", "with care", "more", Purpose.PRODUCTION, 0.3, ()),
    ),
    "an upgrade on bare servers": (
        UPGRADE,
        Expected("yes", "yes", "yes", "yes", "as ever", Purpose.CONFIGURATIONS, None, ()),
    ),
}


def benchmark_in(name: str) -> Benchmark:
    """That of a row of `EXPECTED`."""
    benchmark, _ = EXPECTED[name]
    return shipped(benchmark) if isinstance(benchmark, str) else benchmark


@pytest.fixture(scope="module")
def claims() -> tuple[ClaimFile, ...]:
    return published_claims()


@cache
def advised(name: str) -> Advice:
    """From all published claims that come with tare."""
    return advise(benchmark_in(name), published_claims())


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answers_are_those_that_the_claims_support(name: str) -> None:
    advice, expected = advised(name), EXPECTED[name][1]
    answers = {verdict.purpose.value: verdict.answer.value for verdict in advice.verdicts}
    assert answers == {
        purpose: getattr(expected, purpose)
        for purpose in ("ranking", "production", "mixing", "configurations", "repetitions")
    }
    assert advice.headline == expected.headline
    assert (advice.gap is None) == (expected.gap is None)
    assert advice.not_measured == expected.unknown
    if not set(advice.not_measured) - set(advice.unknown):
        assert advice.gap == pytest.approx(expected.gap, abs=5e-3)
    else:  # an arm that other contexts alone tell of has the ends of its prior, which move with every claim
        assert (advice.gap or 0) >= (expected.gap or 0) - 5e-3


@pytest.mark.parametrize("name", EXPECTED)
def test_every_answer_cites_claims_that_there_are(name: str, claims: tuple[ClaimFile, ...]) -> None:
    known = {claim.id for claim in claims}
    for verdict in advised(name).verdicts:
        assert set(verdict.claims) <= known
        assert verdict.claims or verdict.answer.value in ("yes", "as ever")


@pytest.mark.parametrize(
    ("gap", "answer"), [(0.1, "no"), (0.25, "only if"), (0.35, "yes")], ids=["below 20 %", "between", "above 30 %"]
)
def test_a_ranking_holds_where_the_gap_is_larger_than_the_report_asks(
    gap: float, answer: str, claims: tuple[ClaimFile, ...]
) -> None:
    (ranking, *_) = advise(replace(SLA, gap=gap), claims).verdicts
    assert ranking.answer.value == answer


def test_of_an_arm_that_nothing_is_known_of_no_ranking_is_promised(claims: tuple[ClaimFile, ...]) -> None:
    (ranking, *_) = advise(replace(shipped("seybold-2018"), gap=3.0), claims).verdicts
    assert ranking.answer.value == "unknown"


def test_what_keeps_no_data_is_told_nothing_of_disks(claims: tuple[ClaimFile, ...]) -> None:
    advice = advise(shipped("casalicchio-2017/cpu"), claims)
    assert {each.metric for each in advice.forecasts} == {"cpu_used", "execution_time"}


def test_what_a_claim_does_not_tell_is_told_of_its_forecast(claims: tuple[ClaimFile, ...]) -> None:
    """Percona's post does not say where the data lay, and an overlay is where it matters most."""
    advice = advise(shipped("seybold-2018"), claims)
    (layer,) = [each for each in advice.forecasts if each.arm.startswith("P-C-L") and each.pool is not None]
    assert layer.pool is not None
    assert layer.pool.unreported == {"storage": 1}
    text = " ".join(lines(advice, NOTHING_OPEN, 400))
    assert "+0.0 % in 1 claim, no interval; not stated: storage [percona-2016-host]" in text
    assert "-1.3 % to +0.0 % in 2 claims, not pooled; not stated: storage by 1 of 2 [moby" in text


def test_of_claims_equally_near_those_of_the_same_database_are_named_first(claims: tuple[ClaimFile, ...]) -> None:
    (address,) = [each for each in advise(shipped("percona-2016"), claims).forecasts if each.borrowed]
    assert [near.differs_in for near in address.near] == [
        ("network",),
        ("database", "client_host"),
        ("database", "network"),
    ]
    assert address.near[0].claim.study == "percona-2016"


@pytest.mark.parametrize(
    ("study", "arm", "first"),
    [
        ("seybold-2018", "VM-L", ("seybold-2018-vm-clear-overhead", ("database", "deployment", "engine"))),
        ("seybold-2018", "VM-C-L", ("seybold-2018-vm-clear-overhead", ("database", "engine"))),
    ],
)
def test_of_virtual_machines_what_is_said_of_them_at_all_is_named(
    study: str, arm: str, first: tuple[str, tuple[str, ...]], claims: tuple[ClaimFile, ...]
) -> None:
    advice = advise(shipped(study), claims)
    (machine,) = [each for each in advice.forecasts if each.arm.startswith(arm)]
    assert (machine.near[0].claim.id, machine.near[0].differs_in) == first
    assert "network" in machine.near[0].unreported
    if machine.borrowed:
        return  # what its prior is made of is shown in place of what is near
    text = " ".join(lines(advice, NOTHING_OPEN, 1000))
    assert f"in {', '.join(first[1])}; not stated: network, " in text
    assert "near, in words, but differs in database, " in text


def test_a_machine_alone_is_not_told_what_a_container_in_one_costs(claims: tuple[ClaimFile, ...]) -> None:
    (machine,) = [each for each in advise(shipped("seybold-2018"), claims).forecasts if each.arm.startswith("VM-L")]
    assert not any(near.claim.id.startswith("seybold-2018-vm-container") for near in machine.near)


@pytest.mark.parametrize(
    ("production", "answer"), [(None, "only if"), ("bare", "only if"), ("vm", "only if"), ("container", "no")]
)
def test_figures_of_machines_without_a_container_are_no_others_either(
    production: DeploymentName | None, answer: str, claims: tuple[ClaimFile, ...]
) -> None:
    machines = Benchmark(
        name="machines", database="mariadb", arms=(planned("bare", BARE), planned("vm", VM)), production=production
    )
    answers = {each.purpose.value: each for each in advise(machines, claims).verdicts}
    assert answers["production"].answer.value == answer
    assert answers["mixing"].answer.value == "no"
    assert answers["mixing"].claims == ("seybold-2018-vm-clear-overhead",)
    assert answers["ranking"].answer.value == "yes"


def of_own(tmp_path: Path, name: str, metric: str, change: float, se: float, *, client: str = "bare") -> None:
    """A claim of three rounds of one's own, beside those that are there."""
    document = setup("container", "host", "bind", client).model_dump(exclude_none=True)
    tree = {
        "format": 1, "study": "mine", "says": "Measured here.",
        "context": {
            "database": {"name": "cassandra"}, "load": {"workload": "YCSB A"}, "client_host": "same",
            "arm": document, "baseline": BARE.model_dump(exclude_none=True),
        },
        "effect": {
            "kind": "measured", "metric": metric, "log_ratio": math.log1p(change), "se": se, "n": 3,
            "printed": {"relative": change},
        },
        "how": {"statistic": "mean", "parity": "known"},
        "source": {
            "title": "Mine", "authors": "me", "year": 2026, "store": "12ab", "where": "findings", "read": "whole",
        },
    }  # fmt: skip
    (tmp_path / f"{name}.yaml").write_text(json.dumps(tree))


def test_a_single_claim_has_the_interval_that_it_came_with(tmp_path: Path) -> None:
    of_own(tmp_path, "one", "throughput", 0.37, 0.52)
    advice = advise(
        replace(BTH, arms=(planned("docker", setup("container", "host", "bind")),)), load_claims([tmp_path])
    )
    text = " ".join(lines(advice, NOTHING_OPEN, 1000))
    # Three rounds: t with 2 degrees of freedom is 4.303 at 95 %.
    low, high = (100 * math.expm1(math.log(1.37) + sign * 4.302653 * 0.52) for sign in (-1, 1))
    assert f"docker, throughput: +37.0 % [{low:+.1f} %, {high:+.1f} %] in 1 claim [one]" in text


def test_claims_too_few_to_pool_tell_how_far_their_own_intervals_reach_and_of_other_clients(tmp_path: Path) -> None:
    of_own(tmp_path, "one", "throughput", 0.37, 0.52)
    of_own(tmp_path, "two", "throughput", 0.10, 0.01, client="container")
    of_own(tmp_path, "three", "read_latency_p99", 0.10, 0.01)
    of_own(tmp_path, "four", "latency_p99", 0.10, 0.01)
    advice = advise(
        replace(BTH, arms=(planned("docker", setup("container", "host", "bind")),)), load_claims([tmp_path])
    )
    text = " ".join(lines(advice, NOTHING_OPEN, 1000))
    assert "+10.0 % to +37.0 % in 2 claims, not pooled, own intervals within [-8" in text
    assert "%]; client deployed differently in 1 of 2 [one, two]" in text
    assert "docker, latency_p99: " in text
    assert "read_latency_p99" not in text
    assert "docker: 1 quantile of single kinds of operation in --json" in text


def forecast(advice: Advice, arm: str, metric: str) -> object:
    (result,) = [each for each in advice.forecasts if each.arm == arm and each.metric == metric]
    return result


def test_the_forecast_of_percona_is_its_own_figure_and_another_without_interval(
    claims: tuple[ClaimFile, ...],
) -> None:
    advice = advise(shipped("percona-2016"), claims)
    (port,) = [each for each in advice.forecasts if each.arm == "published-loopback"]
    assert port.published is not None
    assert port.pool is not None
    assert [known.id for known in port.published.listed] == ["percona-2016-published-port"]
    assert [known.id for known in port.pool.listed] == ["moby-11911-published-port"]
    assert (port.published.effect, port.pool.effect) == (None, None)
    assert port.published.low == pytest.approx(math.log(2200 / 7100), abs=1e-3)
    assert port.pool.high == pytest.approx(math.log(117744 / 264271), abs=1e-3)


def test_the_forecast_of_the_grambow_arms_is_pooled_over_its_six_conditions(
    claims: tuple[ClaimFile, ...],
) -> None:
    advice = advise(GRAMBOW, claims)
    (read,) = [each for each in advice.forecasts if (each.arm, each.metric) == ("III", "update_latency_mean")]
    assert read.pool is not None
    assert read.pool.effect is not None
    assert read.pool.effect.k == 6
    assert 0.02 < read.pool.effect.point < 0.06
    assert read.pool.studies == ("grambow-2018",)
