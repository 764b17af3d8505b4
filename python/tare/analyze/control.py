"""The A/A control: what the machine makes up between two instances of the same arm."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analyze.estimate import Estimate
from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.runs import Runs
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.analyze.statistics.pairing import pair
from tare.study.model import Study

CONFIDENCE = 0.99
RULE = "control-differs"
"""Name of the validity rule: the control's 99 % interval excludes zero."""


@dataclass(frozen=True)
class Control:
    """The control arm against the baseline in throughput, paired by block, by a 99 % t interval."""

    arm: str
    estimate: Estimate

    @property
    def differs(self) -> bool:
        """The rule `control-differs`: then no figure of the study is to be believed. One in a hundred by chance."""
        low, high = self.estimate.low, self.estimate.high
        return low is not None and high is not None and (low > 0 or high < 0)


def control_of(study: Study, runs: Runs) -> Control | None:
    """The study's control, `None` where it has none."""
    arm = next((arm.name for arm in study.arms if arm.control), None)
    if arm is None:
        return None
    pairs = pair(runs, arm, study.baseline, METRICS[PRIMARY])
    return Control(arm, paired_log_ratio_t([ratio for _, ratio in pairs.ratios], CONFIDENCE))
