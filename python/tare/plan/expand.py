"""Study → Plan. Pure: the same study, scale and seed give the same runs under the same digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tare.errors import StudyError
from tare.plan.control import with_control
from tare.plan.later import LATER_IN_ARM, LATER_IN_PROTOCOL, without
from tare.plan.model import Plan, PlannedRun
from tare.protocols import PROTOCOLS, RunProtocol, Turn
from tare.study.model import Study
from tare.study.rules.stages import instances

if TYPE_CHECKING:
    import numpy as np

PLAN_FORMAT = 2
"""Part of the digest: raised when the same study begins to mean other runs."""
_SEED_BITS = 31
"""Generators take a positive 32-bit signed seed; 0 means "by the clock" to some, so it is never given."""


def expand(study: Study, seed: int | None = None, protocols: Mapping[str, RunProtocol] = PROTOCOLS) -> Plan:
    """All runs of `study` in order. `seed`: in place of the study's own. Raises `StudyError` for a bad seed."""
    import numpy as np  # slow to import, and who only compares plans needs none

    seed = study.protocol.seed if seed is None else seed
    if seed < 0:
        raise StudyError(f"a seed is a whole number from 0, not {seed}")
    study = with_control(study)
    order_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    stages = {arms[0].name: [arm.name for arm in arms] for arms in instances(study)}
    names = list(stages)
    protocol = protocols[study.protocol.name]
    if protocol.at_once:
        names.sort(key=lambda name: name != study.baseline)
    rng = np.random.Generator(np.random.PCG64(order_seed))
    begun = protocol.order(names, study.protocol, rng)
    turns = [Turn(turn.block, name) for turn in begun for name in stages[turn.arm]]
    runs = _runs(turns, _block_seeds(run_seed, max(turn.block for turn in turns)))
    return Plan(study=study, seed=seed, runs=runs, digest=_digest(study, seed, runs))


def _runs(turns: Sequence[Turn], seeds: Sequence[int]) -> tuple[PlannedRun, ...]:
    """One run a turn. The arms of a block share its seed: the same questions in each.

    A run's name does not depend on the number of blocks, so that raising the cap leaves the first ones as they are.
    """
    runs: list[PlannedRun] = []
    taken = [0] * len(seeds)
    for turn in turns:
        position = taken[turn.block - 1]
        taken[turn.block - 1] += 1
        runs.append(
            PlannedRun(
                id=f"b{turn.block:02d}-{position + 1}-{turn.arm}",
                index=len(runs),
                block=turn.block,
                position=position,
                arm=turn.arm,
                seed=seeds[turn.block - 1],
            )
        )
    return tuple(runs)


def _block_seeds(sequence: np.random.SeedSequence, count: int) -> list[int]:
    import numpy as np

    raw = np.random.PCG64(sequence).random_raw(count)
    return [int(bits) % (2**_SEED_BITS - 1) + 1 for bits in raw]


def decisive(plan: Plan) -> Mapping[str, Any]:
    """All that decides what is run and how it is judged but the runs, and nothing that is only said about it.

    A question reworded or a published figure mended must not orphan a store that is half full. A margin that is
    changed once there are results was not declared beforehand. Conditions of runs that others made are in no arm.
    """
    study = plan.study
    levels = {name: ", ".join(study.factors[name]) for name in study.conditions if study.imported}
    return {**_decisive(study, plan.seed), **({"conditions": levels} if levels else {})}


def _decisive(study: Study, seed: int) -> dict[str, Any]:
    return {
        "format": PLAN_FORMAT,
        "name": study.name,
        "scale": study.scale,
        "arms": [without(arm.model_dump(mode="json"), LATER_IN_ARM) for arm in study.arms],
        "protocol": without(study.protocol.model_dump(mode="json"), LATER_IN_PROTOCOL),
        "seed": seed,
        **({"margins": dict(study.margins)} if study.margins else {}),
        **({"stages": study.stages} if study.stages else {}),
    }


def _digest(study: Study, seed: int, runs: Sequence[PlannedRun]) -> str:
    """sha256 over all that is decisive, and the runs."""
    whole = {**_decisive(study, seed), "runs": [run.model_dump(mode="json") for run in runs]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
