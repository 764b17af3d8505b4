"""CPUs of arms that take turns."""

from __future__ import annotations

from tare.study.model import Arm
from tare.study.protocol_spec import RotateSpec


def with_cpus(arm: Arm, spec: RotateSpec) -> Arm:
    """Return the arm with its server and its client on the CPUs that the protocol names for them."""
    if spec.cpus is None:
        return arm
    settings, (servers, clients) = arm.settings, spec.cpus
    placed = {
        side: placement.model_copy(
            update={"limits": placement.limits.model_copy(update={"cpus": servers if side == "sut" else clients})}
        )
        for side, placement in settings.sides.items()
    }
    return arm.model_copy(update={"settings": settings.model_copy(update=placed)})
