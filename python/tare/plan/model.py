"""The plan: the study fully expanded into an ordered, seeded list of runs."""

from __future__ import annotations

from tare.study.model import Arm, Study
from tare.study.values import Strict


class PlannedRun(Strict):
    """One planned run. `id` is stable for the same plan: `b03-2-bridge`."""

    id: str
    index: int
    block: int
    """Counted from 1."""
    position: int
    """Place of the run in its block, counted from 0."""
    arm: str
    seed: int
    """Seed of this run's generator, the same for all arms of a block: at least 1, below 2^31."""


class Plan(Strict):
    """The study, with its runs in the order in which they are made.

    `digest` names the plan: the same study, scale and seed give the same digest.
    """

    study: Study
    seed: int
    runs: tuple[PlannedRun, ...]
    digest: str

    def arm(self, name: str) -> Arm:
        """Return the arm of that name. Raises `KeyError` with the name if there is none."""
        arm = next((arm for arm in self.study.arms if arm.name == name), None)
        if arm is None:
            raise KeyError(name)
        return arm
