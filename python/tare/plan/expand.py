"""Study → Plan. Pure: the same study, scale and seed give the same runs under the same digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tare.errors import StudyError
from tare.plan.model import Plan, PlannedRun
from tare.protocols import RunProtocol, Turn
from tare.protocols.registry import PROTOCOLS
from tare.study.model import ConfinementSpec, StorageSpec, Study
from tare.study.protocol_spec import Sequential
from tare.study.rules.repetition import instances

if TYPE_CHECKING:
    import numpy as np


CONTROL = "baseline-again"
"""Name of the control arm, whose settings are exactly those of the baseline."""


LATER_IN_PROTOCOL: Mapping[str, Any] = {
    "measure": "set",
    "measure_most_s": None,
    "paired": False,
    "looks": "set",
    "anytime": "t-mixture",
    "margin": None,
}
LATER_IN_ARM: Mapping[str, Any] = {
    "settings.monitors.*.optional": False,
    "settings.monitors": {},
    "settings.sut.nodes": 1,
    "settings.sut.tls": False,
    "settings.sut.bind": None,
    "settings.sut.log_driver": "json-file",
    "settings.sut.log_target": "stderr",
    "settings.sut.engine": None,
    "settings.client.engine": None,
    **{f"settings.{side}.limits.cpu_weight": None for side in ("sut", "client")},
    **{f"settings.{side}.runtime": None for side in ("sut", "client")},
    **{f"settings.{side}.confinement": ConfinementSpec().model_dump(mode="json") for side in ("sut", "client")},
    **{
        f"settings.{side}.limits.{key}": None
        for side in ("sut", "client")
        for key in ("disk_iops", "shm", "memlock", "swap", "mems", "pids")
    },
    "settings.sut.storage.sync": None,
    "settings.sut.storage.rsize": None,
    "settings.sut.storage.wsize": None,
    "settings.sut.storage.storage_class": None,
    "settings.sut.storage": StorageSpec().model_dump(
        mode="json", exclude={"sync", "rsize", "wsize", "storage_class"}
    ),
    "settings.sut.sysctls": {},
    "settings.sut.vm": None,
    "settings.sut.pod": None,
    "settings.client.own_host": False,
    "settings.workload.requests_per_connection": None,
}
"""Dotted paths of later keys → their defaults; `*` is any key. An inner key comes before its parent, which equals
its default only after the inner key was removed."""
PLAN_FORMAT = 2
"""Part of the digest: increased when the same study comes to mean other runs."""
_SEED_BITS = 31
"""Generators take a positive signed 32-bit seed; 0 means "by the clock" to some, so it is never used."""


def with_control(study: Study) -> Study:
    """Return `study` with its control arm. Raises `StudyError` if another arm has that name.

    A protocol that repeats a publication may omit the control, since the number of runs is part of what it repeats.
    """
    protocol = study.protocol
    if any(arm.control for arm in study.arms) or not (isinstance(protocol, Sequential) or protocol.control):
        return study
    if any(arm.name == CONTROL for arm in study.arms):
        raise StudyError(
            f"study {study.name}: an arm is called {CONTROL!r}, the name of the control arm of every study",
            hint="rename the arm or its level",
        )
    baseline = next(arm for arm in study.arms if arm.name == study.baseline)
    control = baseline.model_copy(update={"name": CONTROL, "control": True})
    return study.model_copy(update={"arms": (*study.arms, control)})


def without_defaults(tree: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a JSON tree without the keys of `later` that have their default values."""
    pruned = _copied(tree)
    for path, default in later.items():
        _prune(pruned, path.split("."), default)
    return pruned


def _copied(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in tree.items()}


def _prune(tree: dict[str, Any], path: list[str], default: Any) -> None:
    step, rest = path[0], path[1:]
    for key in list(tree) if step == "*" else [step]:
        if key not in tree:
            continue
        if not rest:
            if tree[key] == default and type(tree[key]) is type(default):
                del tree[key]
        elif isinstance(tree[key], dict):
            _prune(tree[key], rest, default)


def expand(study: Study, seed: int | None = None, protocols: Mapping[str, RunProtocol] = PROTOCOLS) -> Plan:
    """Return all runs of `study` in order. `seed` replaces the study's own. Raises `StudyError` for a bad seed."""
    import numpy as np  # slow to import, and who only compares plans needs none

    seed = study.protocol.seed if seed is None else seed
    if seed < 0:
        raise StudyError(f"a seed is a whole number of 0 or more, not {seed}")
    study = with_control(study)
    order_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    stages = {arms[0].name: [arm.name for arm in arms] for arms in instances(study)}
    names = list(stages)
    protocol = protocols[study.protocol.name]
    if protocol.at_once:
        names.sort(key=lambda name: name != study.baseline)
    rng = np.random.Generator(np.random.PCG64(order_seed))
    turns_of_first_stages = protocol.order(names, study.protocol, rng)
    turns = [Turn(turn.block, name) for turn in turns_of_first_stages for name in stages[turn.arm]]
    runs = _runs(turns, _block_seeds(run_seed, max(turn.block for turn in turns)))
    return Plan(study=study, seed=seed, runs=runs, digest=_digest(study, seed, runs))


def _runs(turns: Sequence[Turn], seeds: Sequence[int]) -> tuple[PlannedRun, ...]:
    """Make one run for each turn. The arms of a block share its seed, so that each gets the same operations.

    A run's name does not depend on the number of blocks, so raising the cap keeps the names of the first runs.
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
    """Return everything that decides what runs and how it is judged, except the runs; no descriptive text.

    A reworded question or a corrected published figure must not orphan a half-full store. A margin is decisive,
    since a margin changed after results exist was not declared beforehand. Conditions of imported runs are in no
    arm.
    """
    study = plan.study
    levels = {name: ", ".join(study.factors[name]) for name in study.conditions if study.imported}
    return {**_decisive(study, plan.seed), **({"conditions": levels} if levels else {})}


def _decisive(study: Study, seed: int) -> dict[str, Any]:
    return {
        "format": PLAN_FORMAT,
        "name": study.name,
        "scale": study.scale,
        "arms": [without_defaults(arm.model_dump(mode="json"), LATER_IN_ARM) for arm in study.arms],
        "protocol": without_defaults(study.protocol.model_dump(mode="json"), LATER_IN_PROTOCOL),
        "seed": seed,
        **({"margins": dict(study.margins)} if study.margins else {}),
        **({"max_overhead": dict(study.max_overhead)} if study.max_overhead else {}),
        **({"stages": study.stages} if study.stages else {}),
        **({"files": {path: file.sha256 for path, file in study.files.items()}} if study.files else {}),
    }


def _digest(study: Study, seed: int, runs: Sequence[PlannedRun]) -> str:
    """sha256 over everything decisive and the runs."""
    whole = {**_decisive(study, seed), "runs": [run.model_dump(mode="json") for run in runs]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
