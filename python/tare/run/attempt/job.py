"""The job of an attempt, the draft of its record, and the finished record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tare.databases.registry import DATABASES
from tare.deployments.registry import DEPLOYMENTS
from tare.images import Image
from tare.monitors.registry import MONITORS
from tare.plan.model import Plan, PlannedRun
from tare.plugins import Implementations
from tare.record.between import Between
from tare.record.chronicle import ServerReport
from tare.record.duet import DuetTimes
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.loaded_data import LoadedData
from tare.record.measurement import Measurement
from tare.record.monitor import MonitorFacts
from tare.record.network_path import NetworkPath
from tare.record.node import NodeFacts
from tare.record.observation import Parity, Side
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.record.turns import Rotation
from tare.record.usage import Usage
from tare.run.attempt.context import Images, make_token
from tare.run.duet.placement import DuetSlot, slot_of, with_slot
from tare.run.rotation.placement import with_cpus
from tare.storage.registry import STORAGES
from tare.study.model import Arm, ArmSettings, NamedFile
from tare.study.protocol_spec import RotateSpec
from tare.workloads.registry import WORKLOADS


@dataclass(frozen=True)
class Job:
    """What to attempt. `staging`: a directory, not there yet, for the attempt's raw files."""

    store_id: str
    plan: Plan
    run: PlannedRun
    number: int
    images: Images
    staging: Path
    choice: Choice | TurnChoice | None = None
    """The pilot's choice of the measure phase or of turns; `None` in a pilot, or if the study sets the lengths."""

    @property
    def arm(self) -> Arm:
        """Arm of the run, with the CPUs that its protocol gives it."""
        arm, protocol = self.plan.arm(self.run.arm), self.plan.study.protocol
        return with_cpus(arm, protocol) if isinstance(protocol, RotateSpec) else with_slot(arm, self.slot)

    @property
    def slot(self) -> DuetSlot | None:
        """Slot of a run in a duet; `None` if the run has the machine to itself."""
        return slot_of(self.plan, self.run)

    @property
    def files(self) -> Mapping[str, NamedFile]:
        """Content of the files that the study names."""
        return self.plan.study.files

    @property
    def token(self) -> str:
        """Token that names everything that the attempt makes."""
        return make_token(self.store_id, self.run.id, self.number)


@dataclass
class Draft:
    """Record in the making. A failed attempt keeps what was learned before the failure."""

    site: str | None = None
    host: HostFacts = field(default_factory=HostFacts)
    engine: EngineFacts | None = None
    between: Between | None = None
    client_host: HostFacts | None = None
    client_engine: EngineFacts | None = None
    emulated: tuple[Side, ...] = ()
    snapshot: LoadedData | None = None
    effective: Mapping[str, str] | None = None
    parity: Parity = field(default_factory=Parity)
    path: NetworkPath | None = None
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    """The first node's values are also the fields above."""
    usage: Usage | None = None
    monitors: Mapping[str, MonitorFacts] | None = None
    chronicle: ServerReport | None = None
    measurement: Measurement | None = None
    continues: str | None = None
    rotation: Rotation | None = None
    duet: DuetTimes | None = None
    raw: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    oom_kills: int | None = None
    """OOM kills in the server's control group in warm-up and measure phase; `None` if they could not be counted."""
    oom_kills_before: dict[str, int | None] = field(default_factory=dict)
    """Node → the group's count when the warm-up began."""
    notes: dict[str, str] = field(default_factory=dict)
    """Raw files written by tare itself: name → text."""

    def of_nodes(self, key: str, values: Mapping[str, Any]) -> None:
        """Record one value of each node under `key`; `values`: node name → value."""
        for name, value in values.items():
            self.nodes[name] = replace(self.nodes.get(name, NodeFacts()), **{key: value})


def record_of(job: Job, draft: Draft, times: tuple[PhaseTime, ...], outcome: Outcome) -> RunRecord:
    """Make the record of an attempt that has come as far as `draft`."""
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
        between=draft.between,
        client_host=draft.client_host,
        client_engine=draft.client_engine,
        images={"sut": _bits(job.images.sut), "client": _bits(job.images.client)},
        emulated=draft.emulated,
        snapshot=draft.snapshot,
        effective=draft.effective,
        parity=draft.parity,
        path=draft.path,
        nodes=draft.nodes if len(draft.nodes) > 1 else None,
        usage=draft.usage and replace(draft.usage, sut_oom_kills=draft.oom_kills),
        monitors=draft.monitors,
        chronicle=draft.chronicle,
        pilot=job.choice,
        measurement=draft.measurement if outcome.ok else None,
        plugins=plugins_in(arm.settings) or None,
        duet=draft.duet,
        rotation=draft.rotation,
        continues=draft.continues,
        raw=draft.raw,
        outcome=outcome,
        notices=tuple(draft.notices),
    )


def unmade_record(plan: Plan, run: PlannedRun, number: int, site: str, reason: str) -> RunRecord:
    """Make the record of an attempt that could not start because its site was unavailable."""
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
        host=HostFacts(),
        engine=None,
        images={"sut": None, "client": None},
        effective=None,
        parity=Parity(),
        path=None,
        measurement=None,
        raw=(),
        outcome=Outcome(ok=False, reason=reason, failed_in=Phase.PROVISION),
    )


def plugins_in(settings: ArmSettings) -> Mapping[str, Mapping[str, str]]:
    """Return the third-party plug-ins that an arm uses: "kind name" → package and version."""
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


def _bits(image: Image | None) -> ImageFacts | None:
    if image is None:
        return None
    return ImageFacts(image.reference, image.digest, image.engine_id, image.packages, image.labels)
