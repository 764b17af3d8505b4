"""The studies that `make bench-protocol` makes: those of `tare calibrate --only work`, under three protocols.

Identical servers (the control) and one known effect: 105 queries a transaction instead of 100. `fixed` and
`buckets` share their runs, as they differ in the analysis alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.calibrate import studies
from tare.calibrate.kinds import Contrast, Injection, Kind, transactions_per_cpu_second
from tare.plan.expand import CONTROL
from tare.study.model import Arm, ArmSettings, Study
from tare.study.protocol_spec import DuetSpec, FixedSpec, InterleaveSpec, ProtocolSpec

BASELINE, INJECTED = "k100", "k105"
BLOCKS = 8
MEASURE_S = 7.0
"""A duet drops two of its windows; the others measure as long, so that all have the same parity."""
TITLE = "work +5 %"


def interleave(number: int) -> Study:
    """Every arm once a block, in mirrored random order, each run restarted."""
    return _study(number, "interleave", InterleaveSpec(blocks=BLOCKS, target=None, seed=number))


def together(number: int) -> Study:
    """All runs of an arm, then the next arm."""
    return _study(number, "together", FixedSpec(name="fixed", blocks=BLOCKS, sequence="together", seed=number))


def duet(number: int) -> Study:
    """The baseline and one other arm at once, SUT and client on one CPU, swapped half-way."""
    return _study(number, "duet", DuetSpec(name="duet", blocks=BLOCKS, target=None, seed=number))


_CONTRASTS = (
    Contrast(CONTROL, BASELINE),
    Contrast(INJECTED, BASELINE, Injection(TITLE, transactions_per_cpu_second)),
)
POOLS: Mapping[str, Kind] = {
    "interleave": Kind("interleave", interleave, _CONTRASTS),
    "together": Kind("fixed blocks", together, _CONTRASTS),
    "duet": Kind("duet", duet, _CONTRASTS),
}
"""In the order in which they take turns."""


def _study(number: int, name: str, protocol: ProtocolSpec) -> Study:
    made = studies.work(number)
    pinned = not isinstance(protocol, DuetSpec)
    arms = tuple(_arm(arm, pinned=pinned) for arm in made.arms if arm.name in (BASELINE, INJECTED))
    changes = {"name": f"bench-{name}", "arms": arms, "protocol": protocol, "scale": "full"}
    return made.model_copy(update=changes)


def _arm(arm: Arm, *, pinned: bool) -> Arm:
    settings = arm.settings
    changes: dict[str, object] = {"workload": {**settings.workload, "measure_s": MEASURE_S}}
    if not pinned:
        changes |= {
            side: placement.model_copy(update={"limits": placement.limits.model_copy(update={"cpus": None})})
            for side, placement in settings.sides.items()
        }
    moved: ArmSettings = settings.model_copy(update=changes)
    return arm.model_copy(update={"settings": moved})
