"""What is pooled, what is only listed, and what may not stand beside each other at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.errors import StudyError
from tare.knowledge.claim import Claim, ClaimFile
from tare.knowledge.pool import pool

ARM = {"deployment": "container", "network": "host", "storage": "bind", "engine": "docker", "runtime": "runc"}
BARE = {"deployment": "bare", "network": "host", "storage": "host", "engine": "none", "runtime": "none"}


def claim(number: int, log_ratio: float = -0.05, se: float | None = 0.01, **more: Any) -> ClaimFile:
    context = {
        "database": {"name": more.pop("database", "redis")},
        "load": {"workload": "any", "level": more.pop("level", None)},
        "arm": {**ARM, **more.pop("arm", {})},
        "baseline": BARE,
        "client_host": "same",
    }
    how: Mapping[str, Any] = {"statistic": "mean", "parity": "known", **more.pop("how", {})}
    effect = {
        "kind": "measured", "metric": "throughput", "log_ratio": log_ratio, "se": se, "n": 8 if se else None,
        "printed": {"relative": math.expm1(log_ratio)},
    }  # fmt: skip
    source = {
        "title": "A",
        "authors": "B",
        "year": 2020,
        "url": "https://example.org/",
        "where": "x",
        "read": "whole",
        **more.pop("source", {}),
    }
    tree = {
        "format": 1,
        "study": "s",
        "says": "x",
        "context": context,
        "effect": effect,
        "how": how,
        "source": source,
    }
    return ClaimFile(f"c{number}", Claim.model_validate(tree), Path("x"))


def several(count: int, **more: Any) -> Sequence[ClaimFile]:
    return [claim(n, -0.05 - 0.002 * n, **more) for n in range(count)]


def test_four_are_listed_with_their_range_and_five_are_pooled() -> None:
    four, five = pool(several(4)), pool(several(5))
    assert four is not None
    assert five is not None
    assert four.effect is None
    assert four.why == "4 of 4 with a standard error, 5 are needed"
    assert four.low == pytest.approx(-0.056)
    assert four.high == pytest.approx(-0.05)
    assert five.effect is not None
    assert five.effect.point == pytest.approx(-0.054, abs=1e-6)
    assert five.effect.low < five.effect.point
    assert five.effect.moderators == ()


def test_a_weak_source_enters_neither_range_nor_interval() -> None:
    weak = claim(9, -0.9, source={"weak": True, "weak_because": "slides"})
    summed = pool([*several(5), weak])
    assert summed is not None
    assert summed.effect == (pool(several(5)) or summed).effect
    assert summed.low == pytest.approx(-0.058)
    assert weak not in summed.listed
    assert pool([weak]) is None


@pytest.mark.parametrize(
    "part", [{"network": "bridge"}, {"storage": "layer"}, {"engine": "podman"}, {"runtime": "runsc"}]
)
def test_nothing_is_pooled_across_path_storage_or_engine(part: Mapping[str, str]) -> None:
    with pytest.raises(StudyError, match="differ in"):
        pool([*several(5), claim(9, arm=part)])


def test_ten_are_pooled_with_a_moderator_that_they_vary_in() -> None:
    light = [claim(n, -0.10 - 0.001 * n, level="light") for n in range(5)]
    full = [claim(n + 5, -0.02 - 0.001 * n, level="full") for n in range(5)]
    pooled = pool([*light, *full])
    assert pooled is not None
    assert pooled.effect is not None
    ((name, coefficient, low, high),) = pooled.effect.moderators
    assert name == "level: light against full"
    assert coefficient == pytest.approx(-0.08, abs=1e-6)
    assert low < coefficient < high
    assert pooled.effect.point == pytest.approx(-0.062, abs=1e-6)


def test_two_moderators_take_twenty_claims() -> None:
    levels = ["light", "medium", "full"] * 5
    pooled = pool([claim(n, -0.05, level=level) for n, level in enumerate(levels)])
    assert pooled is not None
    assert pooled.effect is not None
    assert pooled.effect.moderators == ()


def test_moderators_that_go_together_are_one() -> None:
    made = [("light", "redis"), ("full", "mariadb")] * 10
    pooled = pool([claim(n, -0.05 - 0.001 * n, level=each, database=name) for n, (each, name) in enumerate(made)])
    assert pooled is not None
    assert pooled.effect is not None
    assert [name for name, *_ in pooled.effect.moderators] == ["level: light against full"]


def test_moderators_that_vary_by_themselves_are_two() -> None:
    made = [("light", "redis"), ("full", "mariadb"), ("full", "redis"), ("light", "mariadb")] * 5
    pooled = pool([claim(n, -0.05 - 0.001 * n, level=each, database=name) for n, (each, name) in enumerate(made)])
    assert pooled is not None
    assert pooled.effect is not None
    names = [name for name, *_ in pooled.effect.moderators]
    assert names == ["level: light against full", "database: redis against mariadb"]


@pytest.mark.parametrize(
    "how",
    [
        {"statistic": "median", "parity": "unknown"},
        {"statistic": "mean", "parity": "broken"},
        {"statistic": "single", "parity": "unknown"},
    ],
)
def test_what_has_no_weight_is_listed_still(how: Mapping[str, str]) -> None:
    pooled = pool([*several(5), claim(9, -0.5, how=how)])
    assert pooled is not None
    assert pooled.effect is not None
    assert pooled.effect.k == 5
    assert len(pooled.listed) == 6
    assert pooled.low == -0.5


def test_a_figure_without_a_standard_error_has_no_weight() -> None:
    pooled = pool([*several(4), claim(9, se=None)])
    assert pooled is not None
    assert pooled.effect is None


def test_an_average_is_not_counted_beside_what_it_is_of() -> None:
    pooled = pool([*several(4), claim(9, how={"summary_of": "all"})])
    assert pooled is not None
    assert len(pooled.listed) == 4


def test_nothing_is_no_pool() -> None:
    assert pool([]) is None
