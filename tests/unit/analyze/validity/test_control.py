"""The A/A control: when it makes a study invalid, and that it never passes for a result."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.analysis import Control, control_of
from tare.analyze.runs import select_runs
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.protocols.stopping import Rule, reach
from tare.record.run_record import RunRecord
from tare.study.model import Study

AGAIN = "baseline-again"


def controlled() -> Study:
    """Bare, bridge and the control."""
    study = synthetic.study(("bare", "bridge"))
    control = study.arms[0].model_copy(update={"name": AGAIN, "control": True})
    return study.model_copy(update={"arms": (*study.arms, control)})


def records(off: float, blocks: int = 8) -> list[RunRecord]:
    """The control is off by so much, give or take a percent."""
    made = []
    for block in range(blocks):
        wobble = 0.01 if block % 2 else -0.01
        rates = {"bare": 1900.0, "bridge": 1700.0 + block, AGAIN: 1900 * (1 + off + wobble)}
        made += [synthetic.record(block, arm, rate, position=n) for n, (arm, rate) in enumerate(rates.items())]
    return made


def test_a_control_that_includes_zero_leaves_a_study_valid() -> None:
    analysis = analyze(controlled(), records(0.002))
    assert analysis.control is not None
    assert analysis.control.estimate.confidence == 0.99
    assert not analysis.invalid


@pytest.mark.parametrize("off", [0.03, -0.03])
def test_a_control_that_differs_makes_a_study_invalid(off: float) -> None:
    assert analyze(controlled(), records(off)).invalid


def test_the_interval_is_the_99_percent_one() -> None:
    ratios = [1 + 0.002 + (0.01 if block % 2 else -0.01) for block in range(8)]
    wanted = paired_log_ratio_t(ratios, 0.99)
    control = control_of(controlled(), select_runs(controlled(), records(0.002)))
    assert control is not None
    assert control.estimate.low == pytest.approx(wanted.low)
    assert control.estimate.high == pytest.approx(wanted.high)


def test_without_an_interval_nothing_is_said_to_differ() -> None:
    assert not Control(AGAIN, paired_log_ratio_t([1.5, 1.5], 0.99), paired_log_ratio_t([1.5, 1.5])).differs
    assert not analyze(controlled(), records(0.5, blocks=2)).invalid


def test_a_study_without_a_control_is_not_invalid_for_it() -> None:
    analysis = analyze(synthetic.study(), synthetic.records())
    assert (analysis.control, analysis.invalid) == (None, False)


def test_the_control_has_no_published_figure_though_it_has_the_baseline_s_levels() -> None:
    analysis = analyze(controlled(), records(0.0))
    finding = analysis.finding(AGAIN, "throughput")
    assert (finding.control, finding.published) == (True, None)
    assert all(
        level.published is None for arm in analysis.arms if arm.arm == AGAIN for level in arm.values.values()
    )


def test_stopping_by_width_makes_few_sound_studies_invalid() -> None:
    """99 % of a fixed number of blocks; what the looks add to the 1 % is bounded here, by simulation."""
    rng, studies = np.random.default_rng(11), 8000
    logs = rng.normal(0, math.hypot(0.015, 0.012) * math.sqrt(2), (studies, 60))
    wrong, blocks = np.zeros(studies, dtype=bool), np.zeros(studies)
    for n in (n for n in range(1, 61) if Rule(blocks=60).looks_at(n)):
        now = (blocks == 0) & ((np.sinh(reach(logs[:, :n], 0.035)) <= 0.02) | (n == 60))
        wrong[now] = (np.abs(logs[:, :n].mean(axis=1)) > reach(logs[:, :n], 0.01))[now]
        blocks[now] = n
    assert wrong.mean() <= 0.02
