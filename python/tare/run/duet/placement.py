"""Placement of one arm in a duet: its CPUs before and after the swap, and its partner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.plan.model import Plan, PlannedRun
from tare.record.duet import DuetTimes
from tare.record.network_path import Hop, NetworkPath
from tare.study.model import Arm, Placement
from tare.study.protocol_spec import DuetSpec

_PROXY = (
    "docker-proxy carries the connections, and runs on the CPUs of both arms of a duet: use network bridge or "
    "host, or another protocol"
)


@dataclass(frozen=True)
class DuetSlot:
    """`cpus`: CPU lists of SUT and client together, of the first and the second half. `partner`: the other run."""

    cpus: tuple[str, str]
    partner: str

    @property
    def times(self) -> DuetTimes:
        """The record's `duet` of a run that did not complete."""
        return DuetTimes(self.partner, self.cpus)


def slot_of(plan: Plan, run: PlannedRun) -> DuetSlot | None:
    """Return the slot of a run; `None` if its protocol runs one arm at a time.

    The first run of a block starts on the first set of CPUs, the second run on the second set.
    """
    spec = plan.study.protocol
    if not isinstance(spec, DuetSpec):
        return None
    partner = next(each for each in plan.runs if each.block == run.block and each.id != run.id)
    first, second = spec.cpus
    return DuetSlot((first, second) if run.position == 0 else (second, first), partner.id)


def with_slot(arm: Arm, slot: DuetSlot | None) -> Arm:
    """Return the arm with the CPUs that it starts on."""
    if slot is None:
        return arm
    settings = arm.settings
    placed = {
        side: placement.model_copy(update=_on(placement, slot.cpus[0]))
        for side, placement in settings.sides.items()
    }
    return arm.model_copy(update={"settings": settings.model_copy(update=placed)})


def unpinned_work(slot: DuetSlot | None, path: NetworkPath | None) -> tuple[str, ...]:
    """Return a sentence for each process that works for an arm on CPUs other than its own."""
    if slot is None or path is None or path.hop is not Hop.DOCKER_PROXY:
        return ()
    return (_PROXY,)


def _on(placement: Placement, cpus: str) -> Mapping[str, Any]:
    return {"limits": placement.limits.model_copy(update={"cpus": cpus})}
