"""What each arm costs so far, and how far that can be believed, by the intervals of the stopping rule."""

from __future__ import annotations

from tare.analyze.answer import SMALL, ArmAnswer, arm_answer, trust_by, why_hidden
from tare.analyze.estimate import Estimate, Finding
from tare.analyze.metrics import PRIMARY
from tare.protocols.registry import as_published
from tare.protocols.stopping import Decision, Progress
from tare.report.words.answer_lines import trust_text
from tare.study.model import Study

_CONFIDENCE = 0.95


def answers_so_far(study: Study, decided: Decision) -> dict[str, ArmAnswer]:
    """Arm → its answer in throughput; the control has none."""
    small = study.margins.get(PRIMARY, SMALL)
    return {
        arm.name: arm_answer(_finding(study, arm.name, decided.arms[arm.name]), small)
        for arm in study.arms
        if arm.name in decided.arms and not arm.control
    }


def trust_so_far(study: Study, decided: Decision, block_s: float | None) -> str | None:
    """Say how far the figures so far can be believed; `None` before any arm has an interval.

    Validity rules are not judged here: they need whole records, which only a report reads. `block_s`: machine time
    of a block, seconds.
    """
    answers = answers_so_far(study, decided)
    if all(each.low is None for each in answers.values()):
        return None
    control = next((arm.name for arm in study.arms if arm.control), None)
    seen = decided.arms.get(control) if control is not None else None
    hidden = None if seen is None or seen.low is None or seen.high is None else max(-seen.low, seen.high, 0.0)
    published = ("the protocol gives intervals that are too narrow",) if as_published(study) else ()
    reasons = (*published, *why_hidden(study, hidden, has_control=control is not None))
    return trust_text(trust_by(tuple(answers.values()), hidden, reasons), block_s)


def _finding(study: Study, arm: str, seen: Progress) -> Finding:
    why = "too few blocks" if seen.n else "no block yet"
    estimate = Estimate(
        seen.point, seen.low, seen.high, seen.n, _CONFIDENCE, "so far", None if seen.low is not None else why
    )
    return Finding(study.name, arm, {}, study.baseline, PRIMARY, estimate, None, ())
