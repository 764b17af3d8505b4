"""Rules for limits that not every deployment can have."""

from __future__ import annotations

from tare.deployments import MACHINES, POD
from tare.study.model import Placement
from tare.study.rules.refusal import Refusal


def refuse_limits(sut: Placement, client: Placement | None) -> Refusal | None:
    """Return the reason why a side cannot have its limits; `None` if both can."""
    sides = (("sut", sut), *((("client", client),) if client is not None else ()))
    return next((refusal for side, placed in sides if (refusal := _of_side(side, placed)) is not None), None)


def _of_side(side: str, placed: Placement) -> Refusal | None:
    limits = placed.limits
    if limits.swap is not None and limits.memory is None:
        keys = ((side, "limits", "swap"), (side, "limits"))
        return Refusal(keys, "a limit on swap needs one on memory", "set `limits.memory` too")
    given = [key for key in ("swap", "mems", "pids") if getattr(limits, key) is not None]
    if given and placed.deployment in MACHINES | {POD}:
        why = f"tare cannot limit `{given[0]}` for `{placed.deployment}`"
        keys = ((side, "limits", given[0]), (side, "deployment"))
        return Refusal(keys, why, "leave it out, or use bare, container or containerd")
    return None
