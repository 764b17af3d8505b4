"""Whether a study has ended, in words."""

from __future__ import annotations

from tare.plan.model import Plan
from tare.plural import counted
from tare.run.ending import ending_of
from tare.run.record import RunRecord
from tare.run.resume import Done, finished


def unfinished(plan: Plan, records: tuple[RunRecord, ...]) -> str | None:
    """Why more blocks are to come, `None` where none is; an import has all that there is."""
    done = Done.of(records)
    if plan.study.imported is not None or ending_of(plan, done) is not None:
        return None
    made = counted(len(finished(plan, done)), "block")
    return (
        f"the study has not ended: {made} of at most {plan.study.protocol.blocks} made; `tare run` goes on with it"
    )
