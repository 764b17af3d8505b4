"""Machines of known difference: it falls out of the arm's effect, and is told by itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import between

from tare.analyze import analyze
from tare.analyze.estimate import Estimate
from tare.analyze.metrics import PRIMARY
from tare.analyze.statistics.hosts import Placed, machines_apart, over_hosts
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.record.run_record import RunRecord
from tare.report.words.notes import notes

ARM, NOISE = 0.93, 0.01
NONE = Estimate(None, None, None, 0, 0.95, "none")


def placed(record: RunRecord, turned: bool) -> RunRecord:
    own, other = ("h2", "h1") if turned else ("h1", "h2")
    return record.model_copy(update={"between": between(own, other, swapped=turned)})


def study_of(blocks: int, machine: float, own_cost: float, seed: int = 5, noise: float = NOISE) -> list[RunRecord]:
    """`machine`: throughput of all arms on h2 against h1; `own_cost`: what bridge has beyond that on h2."""
    rng, made = np.random.default_rng(seed), []
    for block in range(1, blocks + 1):
        turned = block % 2 == 0
        for position, name in enumerate(("bare", "bridge")):
            rate = 1900 * (ARM if name == "bridge" else 1.0) * (machine if turned else 1.0)
            rate *= own_cost if turned and name == "bridge" else 1.0
            rate *= math.exp(rng.normal(0, noise))
            made.append(placed(synthetic.record(block, name, rate, position=position), turned))
    return made


def analyzed(records: list[RunRecord]) -> Any:
    return analyze(synthetic.study(("bare", "bridge"), blocks=40), records)


def test_what_a_machine_is_worth_is_told_and_is_in_no_arm() -> None:
    analysis = analyzed(study_of(40, machine=0.8, own_cost=1.0))
    assert (analysis.machines.own, analysis.machines.turned) == ("h1", "h2")
    assert analysis.machines.estimate.low < -0.2 < analysis.machines.estimate.high
    assert analysis.machines.estimate.n == 20
    assert analysis.machines.estimate.high - analysis.machines.estimate.low < 0.03
    effect = analysis.finding("bridge", PRIMARY)
    assert effect.estimate.low < ARM - 1 < effect.estimate.high
    assert effect.estimate.high - effect.estimate.low < 0.02
    assert effect.over_hosts.apart_p > 0.01


def test_a_cost_that_one_machine_alone_has_is_halved_and_told() -> None:
    finding = analyzed(study_of(40, machine=0.8, own_cost=0.9)).finding("bridge", PRIMARY)
    truth = ARM * math.sqrt(0.9) - 1
    assert finding.estimate.low < truth < finding.estimate.high
    assert finding.over_hosts.apart == pytest.approx(-0.1, abs=0.02)
    assert finding.over_hosts.apart_p < 1e-6
    pooled = finding.over_hosts.pooled
    assert finding.estimate.high - finding.estimate.low < (pooled.high - pooled.low) / 3


def test_hosts_weigh_alike_though_one_has_more_blocks() -> None:
    logs = {"h1": [1.0, 1.01, 0.99, 1.0, 1.01, 0.99], "h2": [0.9, 0.91, 0.89]}
    effect = over_hosts(logs, 0.95, NONE)
    assert effect is not None
    means = [float(np.log(each).mean()) for each in logs.values()]
    assert effect.estimate.point == pytest.approx(math.expm1(sum(means) / 2))
    assert effect.freedom == 7


def test_the_interval_is_that_of_a_two_way_layout() -> None:
    effect = over_hosts({"a": [1.0, 1.02], "b": [1.1, 1.14]}, 0.95, NONE)
    assert effect is not None
    logs = [np.log([1.0, 1.02]), np.log([1.1, 1.14])]
    pooled = math.sqrt(sum(float(each.var(ddof=1)) for each in logs) / 2)
    assert effect.error == pytest.approx(pooled / 2)
    assert effect.estimate.high == pytest.approx(math.expm1(effect.mean + 4.302652729911275 * pooled / 2))


def test_its_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng, missed, studies = np.random.default_rng(1), 0, 2000
    for _ in range(studies):
        ratios = {
            host: list(np.exp(math.log(ARM) + own + rng.normal(0, 0.02, 5)))
            for host, own in (("a", -0.05), ("b", 0.05))
        }
        effect = over_hosts(ratios, 0.95, NONE)
        assert effect is not None
        assert effect.estimate.low is not None
        assert effect.estimate.high is not None
        missed += not effect.estimate.low < ARM - 1 < effect.estimate.high
    assert 0.035 < missed / studies < 0.065


def test_one_block_on_a_host_makes_no_interval() -> None:
    effect = over_hosts({"a": [1.0, 1.1, 1.05], "b": [1.2]}, 0.95, NONE)
    assert effect is not None
    assert effect.estimate.low is None
    assert "2 blocks with the server on each host" in (effect.estimate.why or "")
    assert over_hosts({"a": [1.0, 1.1]}, 0.95, NONE) is None


def test_machines_are_told_by_runs_that_follow_each_other() -> None:
    series = [Placed(10, False), Placed(10, False), Placed(8, True), Placed(8.8, True), Placed(11, False)]
    effect = machines_apart([series])
    assert effect is not None
    assert effect.n == 2
    assert effect.point == pytest.approx(-0.2)
    assert machines_apart([[Placed(10, False), Placed(11, False)]]) is None


def test_a_study_whose_hosts_keep_their_parts_is_analysed_as_ever() -> None:
    records = [placed(one, False) for one in study_of(12, machine=1.0, own_cost=1.0)]
    analysis = analyzed(records)
    assert analysis.machines is None
    effect = analysis.finding("bridge", PRIMARY)
    assert effect.over_hosts is None
    assert effect.estimate.point == paired_log_ratio_t([1 + one for _, one in effect.blocks]).point


def test_the_report_says_what_is_machine_and_what_is_arm() -> None:
    words = " ".join(notes(analyzed(study_of(40, machine=0.8, own_cost=0.9)), 80))
    assert "Server and client swapped hosts every other block, starting with the server on h1" in words
    assert "with the server on h2" in words
    assert "both hosts have equal weight" in words
