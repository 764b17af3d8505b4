"""Stores made of records that are made up: nothing was run, so their raw files are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.unit.analyze import synthetic

from tare.plan.expand import expand
from tare.plan.model import Plan, PlannedRun
from tare.record.run_record import RunRecord
from tare.store import resume_store
from tare.study.model import Study


def store_of(path: Path, records: Sequence[RunRecord], study: Study | None = None) -> Path:
    """A store of the study, which is synthetic's of the records' arms unless it is given."""
    arms = tuple(dict.fromkeys(record.arm for record in records if record.arm != "baseline-again"))
    plan = expand(synthetic.study(arms) if study is None else study)
    with resume_store(path, plan) as writer:
        writer.commit_all([record.model_copy(update={"raw": ()}) for record in of_plan(plan, records)])
    return path


def of_plan(plan: Plan, records: Sequence[RunRecord]) -> list[RunRecord]:
    """Records under the plan's own names for them, where the plan has such a run."""
    planned = {(run.block, run.arm): run for run in plan.runs}
    return [_named(plan, planned.get((record.block, record.arm)), record) for record in records]


def _named(plan: Plan, run: PlannedRun | None, record: RunRecord) -> RunRecord:
    place = {} if run is None else {"run_id": run.id, "index": run.index, "position": run.position}
    return record.model_copy(update={"plan_digest": plan.digest, **place})


def known(rates: Mapping[str, Sequence[float]]) -> list[RunRecord]:
    """Arm → its throughput block by block."""
    return [
        synthetic.record(block, arm, rate, position=position)
        for position, (arm, each) in enumerate(rates.items())
        for block, rate in enumerate(each, start=1)
    ]
