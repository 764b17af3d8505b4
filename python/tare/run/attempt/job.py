"""What is to be attempted, what is known of it so far, and the record made of both at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.databases.registry import DATABASES
from tare.deployments.registry import DEPLOYMENTS
from tare.images import Image
from tare.monitors.registry import MONITORS
from tare.plan.model import Plan, PlannedRun
from tare.plugins import Implementations
from tare.protocols.pilot import Choice
from tare.run.attempt.context import Images, make_token
from tare.run.between.sounding import Between
from tare.run.duet.placement import DuetSlot, slot_of, with_slot
from tare.run.record import Outcome, Phase, PhaseTime, RunRecord, Side, to_tree
from tare.storage.registry import STORAGES
from tare.study.model import Arm, ArmSettings
from tare.workloads.registry import WORKLOADS


@dataclass(frozen=True)
class Job:
    """What is to be attempted. `staging`: where the attempt's raw files go, a directory that is not there yet."""

    store_id: str
    plan: Plan
    run: PlannedRun
    number: int
    images: Images
    staging: Path
    choice: Choice | None = None
    """By which the plan's measure phase was chosen; `None` in a pilot, and where it is set."""

    @property
    def arm(self) -> Arm:
        """The arm that the run is of, with the CPUs of its slot."""
        return with_slot(self.plan.arm(self.run.arm), self.slot)

    @property
    def slot(self) -> DuetSlot | None:
        """Where it stands in a duet, `None` where it has the machine to itself."""
        return slot_of(self.plan, self.run)

    @property
    def token(self) -> str:
        """Names all that the attempt makes."""
        return make_token(self.store_id, self.run.id, self.number)


@dataclass
class Draft:
    """What is known of the attempt so far; a failed one keeps what it came to know."""

    site: str | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] | None = None
    between: Between | None = None
    client_host: Mapping[str, Any] | None = None
    client_engine: Mapping[str, Any] | None = None
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


def record_of(job: Job, draft: Draft, times: tuple[PhaseTime, ...], outcome: Outcome) -> RunRecord:
    """The record of an attempt that has come as far as `draft` says."""
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
        site=draft.site,
        host=draft.host,
        engine=draft.engine,
        between=None if draft.between is None else to_tree(draft.between),
        client_host=draft.client_host,
        client_engine=draft.client_engine,
        images={"sut": _bits(job.images.sut), "client": _bits(job.images.client)},
        emulated=draft.emulated,
        snapshot=draft.snapshot,
        effective=draft.effective,
        parity=draft.parity,
        path=draft.path,
        nodes=draft.nodes if len(draft.nodes) > 1 else None,
        usage=draft.usage,
        monitors=draft.monitors,
        chronicle=draft.chronicle,
        pilot=None if job.choice is None else job.choice.model_dump(mode="json"),
        measurement=draft.measurement if outcome.ok else None,
        plugins=plugins_in(arm.settings) or None,
        duet=draft.duet,
        continues=draft.continues,
        raw=draft.raw,
        outcome=outcome,
        notices=tuple(draft.notices),
    )


def unmade_record(plan: Plan, run: PlannedRun, number: int, site: str, reason: str) -> RunRecord:
    """The record of an attempt that could not even begin, as its site was not to be had."""
    arm = plan.arm(run.arm)
    return RunRecord(
        run_id=run.id,
        attempt=number,
        study=plan.study.name,
        scale=plan.study.scale,
        plan_digest=plan.digest,
        block=run.block,
        position=run.position,
        index=run.index,
        arm=arm.name,
        levels=arm.levels,
        settings=arm.settings.model_dump(mode="json"),
        seed=run.seed,
        phases=(),
        site=site,
        host={},
        engine=None,
        images={"sut": None, "client": None},
        effective=None,
        parity={"sut": None, "client": None},
        path=None,
        measurement=None,
        raw=(),
        outcome=Outcome(ok=False, reason=reason, failed_in=Phase.PROVISION),
    )


def plugins_in(settings: ArmSettings) -> Mapping[str, Mapping[str, str]]:
    """Plug-ins of other packages that an arm uses: kind and name → package and version."""
    sides = settings.sides.values()
    used: tuple[tuple[Implementations[Any], Iterable[str | None]], ...] = (
        (DATABASES, (settings.sut.database,)),
        (WORKLOADS, (settings.workload_name,)),
        (DEPLOYMENTS, (side.deployment for side in sides)),
        (MONITORS, settings.monitors),
        (STORAGES, (settings.sut.storage.kind,)),
    )
    return {
        f"{kind.kind} {name}": {"package": package.name, "version": package.version}
        for kind, names in used
        for name in names
        if name is not None and (package := kind.package_of(name)) is not None
    }


def _bits(image: Image | None) -> Mapping[str, Any] | None:
    if image is None:
        return None
    kept = ("reference", "digest", "engine_id", "packages", "labels")
    tree = to_tree(image)
    return {key: tree[key] for key in kept}
