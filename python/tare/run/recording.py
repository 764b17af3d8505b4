"""What is known of an attempt, put together as its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tare.images import Image
from tare.run.record import Outcome, PhaseTime, RunRecord
from tare.run.tree import to_tree

if TYPE_CHECKING:
    from tare.run.found import Found
    from tare.run.phases import Job


def record_of(job: Job, found: Found, times: tuple[PhaseTime, ...], outcome: Outcome) -> RunRecord:
    """The record of an attempt that has come as far as `found` tells."""
    arm, study = job.arm, job.plan.study
    return RunRecord(
        run_id=job.run.id,
        attempt=job.number,
        study=study.name,
        scale=study.scale,
        plan_digest=job.plan.digest,
        block=job.run.block,
        position=job.run.position,
        index=job.run.index,
        arm=arm.name,
        levels=arm.levels,
        settings=arm.settings.model_dump(mode="json"),
        seed=job.run.seed,
        phases=times,
        host=found.host,
        engine=found.engine,
        images={"sut": _bits(job.images.sut), "client": _bits(job.images.client)},
        emulated=found.emulated,
        snapshot=found.snapshot,
        effective=found.effective,
        parity=found.parity,
        path=found.path,
        nodes=found.nodes if len(found.nodes) > 1 else None,
        usage=found.usage,
        monitors=found.monitors,
        chronicle=found.chronicle,
        pilot=None if job.choice is None else job.choice.model_dump(mode="json"),
        measurement=found.measurement if outcome.ok else None,
        duet=found.duet,
        continues=found.continues,
        raw=found.raw,
        outcome=outcome,
        notices=tuple(found.notices),
    )


def _bits(image: Image | None) -> Mapping[str, Any] | None:
    if image is None:
        return None
    kept = ("reference", "digest", "engine_id", "packages", "labels")
    tree = to_tree(image)
    return {key: tree[key] for key in kept}
