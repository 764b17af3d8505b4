"""Whether the measure phase of a study can be chosen by a pilot."""

from __future__ import annotations

from collections.abc import Sequence

from tare.study.model import Arm
from tare.study.protocol_spec import InterleaveSpec, Repetition
from tare.study.reading.document import Document, KeyPath

LEAST_WINDOWS = 4
"""Of a measure phase that is chosen, and of the pilot that it is chosen from: fewer would hide a warm-up that is
not over from the rule of validity that looks for it."""
_WHERE: KeyPath = ("protocol", "measure")


def check(document: Document, protocol: Repetition, arms: Sequence[Arm]) -> None:
    """Raise `StudyError` where the arms differ in what is to be chosen, or a pilot would be too short to tell."""
    if not isinstance(protocol, InterleaveSpec) or protocol.measure != "auto":
        return
    for key in ("measure_s", "window_s"):
        values = {float(arm.settings.workload[key]) for arm in arms}
        if len(values) > 1:
            what = f"workload.{key} is not the same in all arms, so that one length cannot be chosen for all"
            raise document.error(_WHERE, what, hint="leave measure out, or make it alike in all arms")
    workload = arms[0].settings.workload
    least = LEAST_WINDOWS * float(workload["window_s"])
    if float(workload["measure_s"]) < least:
        what = f"a pilot takes {LEAST_WINDOWS} windows a run: workload.measure_s of {least:g} s at least"
        raise document.error(("workload", "measure_s"), what)
    if protocol.measure_most_s is not None and protocol.measure_most_s < least:
        what = f"a measure phase takes {LEAST_WINDOWS} windows: {least:g} s at least"
        raise document.error(("protocol", "measure_most_s"), what)
