"""The A/A control: a second instance of the baseline in every block, whose difference from it should be nil."""

from __future__ import annotations

from tare.errors import StudyError
from tare.study.model import Sequential, Study

CONTROL = "baseline-again"
"""Name of the control arm: its settings are those of the baseline, to the last one."""


def with_control(study: Study) -> Study:
    """`study` with its control arm; raises `StudyError` where an arm of its own has that name.

    A protocol that repeats a publication may go without, as its number of runs is part of what it repeats.
    """
    protocol = study.protocol
    if any(arm.control for arm in study.arms) or not (isinstance(protocol, Sequential) or protocol.control):
        return study
    if any(arm.name == CONTROL for arm in study.arms):
        raise StudyError(
            f"study {study.name}: an arm is called {CONTROL!r}, as the control arm that every study has",
            hint="name the arm or its level otherwise",
        )
    baseline = next(arm for arm in study.arms if arm.name == study.baseline)
    control = baseline.model_copy(update={"name": CONTROL, "control": True})
    return study.model_copy(update={"arms": (*study.arms, control)})
