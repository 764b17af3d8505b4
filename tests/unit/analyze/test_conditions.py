"""Arms that differ in conditions only are told as one, paired under equal conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import measured

from tare.analyze import analyze
from tare.analyze.runs import folded
from tare.record.measurement import Operation
from tare.record.run_record import RunRecord
from tare.report.content import build_report
from tare.study.catalogue import studies
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import installed

EFFECT = {"bare-bare": 1.0, "bare-docker": 0.9, "docker-bare": 0.95, "docker-docker": 0.8}
FACTORS = ("client", "sut", "machine", "threads", "compaction", "key_cache")


@pytest.fixture(scope="module")
def study() -> Study:
    return load(studies()["grambow-2018"], installed())


def records(study: Study, blocks: int = 2, **wanted: str) -> list[RunRecord]:
    """Every arm under its conditions at a rate of these conditions, times the effect of its setup, exactly."""
    made = []
    chosen = [arm for arm in study.arms if wanted.items() <= arm.levels.items()]
    for block in range(1, blocks + 1):
        for n, arm in enumerate(chosen):
            here = "-".join(arm.levels[factor] for factor in FACTORS[2:])
            base = 500 + 37 * (sum(map(ord, here)) % 40) + 11 * block
            setup = f"{arm.levels['client']}-{arm.levels['sut']}"
            made.append(
                synthetic.record(block, arm.name, base * EFFECT[setup], position=n).model_copy(
                    update={"levels": arm.levels, "index": 1000 * block + n}
                )
            )
    return made


def test_one_arm_a_setup_is_left_and_a_block_for_each_condition_and_repetition(study: Study) -> None:
    whole, kept = folded(study, records(study, machine="m3.medium"))
    assert [arm.name for arm in whole.arms] == list(EFFECT)
    assert whole.baseline == "bare-bare"
    assert len({record.block for record in kept}) == 2 * 3 * 3 * 2
    assert all(sum(record.block == n for record in kept) == 4 for n in range(1, 37))
    firsts = [record for record in kept if record.run_id.startswith("b01")]
    assert max(record.block for record in firsts) == 18


def test_the_effect_is_that_of_pairs_under_equal_conditions(study: Study) -> None:
    analysis = analyze(*folded(study, records(study)))
    for name, effect in list(EFFECT.items())[1:]:
        estimate = analysis.finding(name, "throughput").estimate
        assert estimate.point == pytest.approx(effect - 1)
        assert estimate.n == 2 * 36
    assert [dict(stratum.levels) for stratum in analysis.strata] == [
        {"machine": machine, "threads": threads}
        for machine, numbers in (("m3.medium", ("t10", "t25", "t50")), ("m3.large", ("t30", "t75", "t150")))
        for threads in numbers
    ]
    assert analysis.strata[0].finding("docker-docker", "throughput").estimate.n == 2 * 6


def test_published_figures_stand_beside_the_findings_of_their_stratum(study: Study) -> None:
    chosen = records(study, machine="m3.medium", threads="t25")
    kind = Operation(1, 0, measured(chosen[0]).latency)
    split = [
        each.model_copy(
            update={"measurement": replace(measured(each), by_operation={"read": kind, "update": kind})}
        )
        for each in chosen
    ]
    (stratum,) = analyze(*folded(study, split)).strata
    finding = stratum.finding("bare-docker", "update_latency_mean")
    assert finding.published == pytest.approx(0.0306)
    assert finding.published_where == "Table 3, 25 threads"
    assert finding.as_published is not None


def test_a_report_of_it_can_be_made_while_it_is_being_run(study: Study) -> None:
    report = build_report(study, records(study, blocks=1, machine="m3.medium", threads="t10"), planned=720)
    assert report.planned == 720
    assert [arm.arm for arm in report.analysis.arms] == list(EFFECT)


def test_folding_twice_is_folding_once(study: Study) -> None:
    once = folded(study, records(study, machine="m3.large"))
    again = folded(*once)
    assert again[0] == once[0]
    assert [(record.arm, record.block) for record in again[1]] == [(record.arm, record.block) for record in once[1]]


def test_a_study_without_conditions_is_left_alone() -> None:
    whole, made = synthetic.study(), synthetic.records(blocks=1)
    assert folded(whole, made) == (whole, tuple(made))
