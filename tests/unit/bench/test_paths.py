"""The table of `bench.paths`: two generators that agree, that differ, and one that is at its client's end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from bench.paths.agreement import Agreement, agreement, table
from tare.analyze.analysis import Analysis, analyze
from tare.analyze.validity.evidence import Alarm
from tare.run.record import RunRecord
from tare.study.model import Study

FACTORS = {"path": ("bare", "bridge"), "generator": ("tare-load", "sysbench")}
NOISE = {
    "tare-load": (1.0, 1.004, 0.996, 1.002, 0.998, 1.003, 0.997, 1.001),
    "sysbench": (1.001, 0.997, 1.003, 0.998, 1.002, 0.996, 1.004, 1.0),
}


def study() -> Study:
    arms = tuple(
        synthetic.arm("-".join(levels)).model_copy(update={"levels": dict(zip(FACTORS, levels, strict=True))})
        for levels in product(*FACTORS.values())
    )
    whole = synthetic.study(tuple(arm.name for arm in arms), blocks=8, factors=FACTORS, published=())
    return whole.model_copy(update={"arms": arms, "baseline_levels": {"path": "bare"}})


def records(bridge: Mapping[str, float]) -> list[RunRecord]:
    """Eight blocks; `bridge`: generator → its throughput over that of bare."""
    made = []
    for block in range(1, 9):
        for position, (path, generator) in enumerate(product(*FACTORS.values())):
            rate = 1000.0 * (bridge[generator] * NOISE[generator][block - 1] if path == "bridge" else 1.0)
            one = synthetic.record(block, f"{path}-{generator}", rate, position=position)
            levels: dict[str, Any] = {"path": path, "generator": generator}
            made.append(one.model_copy(update={"levels": levels}))
    return made


def concluded(bridge: Mapping[str, float]) -> Analysis:
    return analyze(study(), records(bridge))


def throughput(analysis: Analysis) -> Agreement:
    return next(one for one in agreement(study(), analysis) if one.metric == "throughput")


def test_generators_that_say_the_same_agree_within_the_bound() -> None:
    verdict = throughput(concluded({"tare-load": 0.9, "sysbench": 0.91}))
    assert verdict.path == "bridge"
    assert verdict.apart.point == pytest.approx(0.91 / 0.90 - 1, rel=1e-6)
    assert verdict.apart.n == 8
    assert verdict.verdict == "agree within 5%"


def test_generators_that_say_something_else_differ() -> None:
    assert throughput(concluded({"tare-load": 0.8, "sysbench": 0.95})).verdict == "differ"


def test_an_interval_that_is_too_wide_leaves_it_open() -> None:
    verdict = throughput(concluded({"tare-load": 0.9, "sysbench": 0.9}))
    assert replace(verdict, apart=replace(verdict.apart, low=-0.08, high=0.03)).verdict.startswith("open")
    why = "2 blocks only, an interval takes 3"
    assert (
        replace(verdict, apart=replace(verdict.apart, low=None, high=None, why=why)).verdict
        == f"no interval: {why}"
    )


def test_whose_client_set_the_rate_is_said() -> None:
    analysis = concluded({"tare-load": 0.9, "sysbench": 0.99})
    alarm = Alarm("client-bottleneck", "bare-sysbench", "the client set the rate", (), "")
    bound = replace(analysis, alarms=(*analysis.alarms, alarm))
    verdict = throughput(bound)
    assert verdict.bound == {"sysbench"}
    assert verdict.verdict.endswith(", sysbench at its client's end")
    text = "\n".join(table(study(), bound, agreement(study(), bound)))
    assert "| bare-sysbench | 1,000 |" in text
    assert "`client-bottleneck` (bare-sysbench)" in text
    assert "| throughput | bridge | -10.0%" in text
