"""A claim of another context is a prior: nearer contexts weigh more, and what differs is named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tare.knowledge.benchmark import PlannedArm
from tare.knowledge.claim import Claim, ClaimFile, Setup, load_claims
from tare.knowledge.dispute import all_disputes
from tare.knowledge.prior import (
    FEATURES,
    SETTING,
    SINGLE_SD,
    SPREAD,
    STUDY,
    TYPICAL,
    Prior,
    Spreads,
    applicable,
    learned,
    metrics_for,
    point_of,
    prior_of,
)

ARM = {
    "deployment": "container",
    "client": "bare",
    "network": "host",
    "storage": "bind",
    "engine": "docker",
    "runtime": "runc",
}
BARE = {
    "deployment": "bare",
    "client": "bare",
    "network": "host",
    "storage": "host",
    "engine": "none",
    "runtime": "none",
}
AS_TYPICAL = Spreads(TYPICAL, 0)


def claim(
    name: str, effect: float | dict[str, Any], *, study: str = "s", database: str = "redis", **arm: Any
) -> ClaimFile:
    figure = (
        {"kind": "measured", "log_ratio": effect, "se": 0.01, "n": 8, "printed": {"relative": math.expm1(effect)}}
        if isinstance(effect, float)
        else effect
    )
    tree = {
        "format": 1,
        "study": study,
        "says": "x",
        "context": {
            "database": {"name": database}, "load": {"workload": "any"}, "client_host": "same",
            "arm": {**ARM, **arm}, "baseline": BARE,
        },
        "effect": {"metric": "throughput", **figure},
        "how": {"statistic": "mean", "parity": "known"},
        "source": {"title": "A", "url": "https://example.org/", "where": "x", "read": "whole"},
    }  # fmt: skip
    return ClaimFile(name, Claim.model_validate(tree), Path("x"))


def planned(**arm: Any) -> PlannedArm:
    return PlannedArm("arm", Setup.model_validate({**ARM, **arm}), Setup.model_validate(BARE))


def prior(claims: Sequence[ClaimFile], database: str = "redis", **arm: Any) -> Prior:
    result = prior_of(planned(**arm), database, "throughput", claims, AS_TYPICAL)
    assert result is not None
    return result


def test_the_prediction_is_the_conditional_mean_of_a_gaussian() -> None:
    """By hand, of a bivariate normal: one claim; the arm has another path and study, and neither tells its load."""
    result = prior([claim("one", -0.5)], network="bridge")
    between = TYPICAL[SPREAD] ** 2
    var = 0.2**2 + between + 0.01**2 + TYPICAL[SETTING] ** 2
    cov = 0.2**2 + between * math.exp(-TYPICAL["network"] - TYPICAL[STUDY] - TYPICAL["load"] / 2)
    assert result.point == pytest.approx(-0.5 * cov / var)
    rest = 0.2**2 + between + TYPICAL[SETTING] ** 2 - cov**2 / var
    assert result.high - result.point == pytest.approx(1.6448536 * math.sqrt(rest))
    assert (result.nearest[0].differs_in, result.nearest[0].unreported) == (("network",), ())


def test_the_claim_of_the_nearer_context_weighs_more_and_is_named_first() -> None:
    claims = [claim("far", -0.5, study="b", network="bridge", database="cassandra"), claim("near", -0.1, study="c")]
    result = prior(claims)
    assert [each.claim.id for each in result.nearest] == ["near", "far"]
    assert result.nearest[1].differs_in == ("database", "network")
    assert abs(result.point + 0.1) < abs(result.point + 0.5)


def test_the_interval_widens_with_what_differs() -> None:
    claims = [claim("one", -0.1)]
    same, other, farther = (
        prior(claims),
        prior(claims, network="bridge"),
        prior(claims, "mongodb", network="bridge"),
    )
    assert same.high - same.low < other.high - other.low < farther.high - farther.low


def test_what_is_not_told_lies_between_the_same_and_another() -> None:
    unreported = prior([claim("one", -0.4, storage=None)])
    assert unreported.nearest[0].unreported == ("storage",)
    same, other = prior([claim("one", -0.4)]), prior([claim("one", -0.4, storage="layer")])
    assert same.point < unreported.point < other.point


def test_a_weak_source_and_a_program_without_database_weigh_nothing() -> None:
    weak = claim("weak", -0.9)
    tree = weak.claim.model_dump()
    tree["source"] |= {"weak": True, "weak_because": "slides"}
    claims = [ClaimFile("weak", Claim.model_validate(tree), Path("x")), claim("fio", -0.9, database="fio")]
    assert applicable(claims) == ()
    assert prior_of(planned(), "redis", "throughput", claims, AS_TYPICAL) is None


def test_another_contrast_says_nothing() -> None:
    runsc = {"deployment": "vm", "engine": "none"}
    assert prior_of(planned(**runsc), "redis", "throughput", [claim("one", -0.1)], AS_TYPICAL) is None


@pytest.mark.parametrize(
    ("ends", "middle", "half"),
    [
        ({"low": -0.2, "high": -0.1}, -0.15, 0.05),
        ({"low": -0.5}, -0.25, 0.25),
        ({"high": -0.5}, -0.75, 0.25),
        ({"low": 0.5}, 0.75, 0.25),
        ({"high": 0.3, "absolute": True}, 0.0, 0.3),
    ],
    ids=["both", "up to", "beyond", "above", "size"],
)
def test_a_range_is_its_middle_with_the_width_of_its_half(ends: dict[str, Any], middle: float, half: float) -> None:
    point = point_of(claim("range", {"kind": "range", "printed": "x", **ends}))
    assert point.y == pytest.approx(middle)
    assert point.variance == pytest.approx(SINGLE_SD**2 + (half / 1.6448536) ** 2)


def test_spreads_are_learned_from_what_claims_differ_by() -> None:
    """Two paths far apart in every one of eight databases: the path tells much, the database next to nothing."""
    draw = np.random.default_rng(1)
    claims = [
        claim(f"{name}-{path}", shift + float(draw.normal(0, 0.02)), study=name, database=name, network=path)
        for name in "abcdefgh"
        for path, shift in (("host", -0.02), ("published-loopback", -0.6))
    ]
    value = learned(claims).value
    assert value["network"] > 5 * value["database"]
    assert learned(claims).between(["network"]) > 2 * learned(claims).between(["database", STUDY])
    assert value["storage"] == pytest.approx(TYPICAL["storage"], rel=0.3)  # nothing tells


def test_what_is_learned_does_not_hang_on_the_order_of_the_claims() -> None:
    claims = [claim(f"c{n}", -0.05 * n, study=f"s{n % 3}", network="bridge" if n % 2 else "host") for n in range(9)]
    first, turned = learned(claims), learned(list(reversed(claims)))
    assert set(first.value) == {*FEATURES, STUDY, SPREAD, SETTING}
    assert first.value == pytest.approx(dict(turned.value), rel=0.05)


def test_metrics_of_one_kind_of_operation_are_borrowed_from_the_same_database_only() -> None:
    claims = load_claims()
    assert "read_latency_mean" in metrics_for("cassandra", claims)
    assert "read_latency_mean" not in metrics_for("mariadb", claims)


def test_claims_dispute_where_nothing_told_sets_them_apart() -> None:
    one, other = claim("one", -0.5), claim("other", -0.1, study="t")
    assert [(each.one.id, each.other.id) for each in all_disputes([one, other])] == [("one", "other")]
    assert all_disputes([one, claim("other", -0.1, study="t", network="bridge")]) == ()
    assert all_disputes([one, claim("other", -0.1, study="t", database="mariadb")]) == ()
    assert all_disputes([one, claim("other", -0.48, study="t")]) == ()
    pairs = {(each.one.id, each.other.id) for each in all_disputes(load_claims())}
    assert ("postgres-benchmarks-pg16", "postgres-benchmarks-pg18") in pairs
