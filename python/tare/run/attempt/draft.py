"""What is known of an attempt so far, and the record made of it at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tare.images import Image
from tare.run.record import Outcome, PhaseTime, RunRecord, Side, to_tree

if TYPE_CHECKING:
    from tare.run.attempt.phases import Job


@dataclass
class Found:
    """What is known of the attempt so far; a failed one keeps what it came to know."""

    host: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] | None = None
    emulated: tuple[Side, ...] = ()
    snapshot: Mapping[str, Any] | None = None
    effective: Mapping[str, str] | None = None
    parity: Mapping[str, Any] = field(default_factory=lambda: {"sut": None, "client": None})
    path: Mapping[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Node → `address`, `effective`, `parity`, `path`, `parity_after`, `chronicle`; the first one's stand above."""
    usage: Mapping[str, Any] | None = None
    monitors: Mapping[str, Any] | None = None
    chronicle: Mapping[str, Any] | None = None
    measurement: Mapping[str, Any] | None = None
    continues: str | None = None
    duet: Mapping[str, Any] | None = None
    raw: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Raw files of tare's own: name → text."""

    def of_nodes(self, key: str, values: Mapping[str, Any]) -> None:
        """Take down something of each node, by its name."""
        for name, value in values.items():
            self.nodes.setdefault(name, {})[key] = value


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
