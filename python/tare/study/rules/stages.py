"""Stages: levels of a factor that follow each other on one instance of an arm, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.study.model import Arm, Study
from tare.study.protocol_spec import DuetSpec, InterleaveSpec
from tare.study.reading.baselines import Baselines
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import varies
from tare.study.reading.file import StudyFile
from tare.study.suggest import did_you_mean


def check(document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], baseline: Baselines) -> None:
    """Raise `StudyError` where a factor cannot be one of stages, or the baseline is not one of each stage."""
    where: KeyPath = ("stages",)
    factor = file.stages
    if factor is None:
        return
    if factor not in names:
        raise document.error(
            where, f"there is no factor {factor!r}", hint=did_you_mean(factor, names, kind="factors")
        )
    if factor in file.conditions:
        what = f"{factor!r} is a condition, over which findings are averaged; stages are no repetitions"
        raise document.error(where, what, hint="leave it out of `conditions`")
    for key in varies(file.factors[factor]):
        if not key.startswith("workload.") or key == "workload.name":
            what = f"{factor!r} sets {key}, but stages follow each other on one server that stays as it is"
            raise document.error(where, what, hint="only keys of the workload may differ between stages")
    if not baseline.levels or factor in baseline.levels:
        others = ", ".join(f"{name}: LEVEL" for name in names if name not in {factor, *file.conditions})
        what = "with stages each one has its own baseline, so that the baseline names levels of the other factors"
        raise document.error(("baseline",), what, hint=f"baseline: {{{others}}}")
    if isinstance(file.protocol, DuetSpec):
        raise document.error(where, "a duet drives two arms at once, and has no stages", hint="use `interleave`")
    if isinstance(file.protocol, InterleaveSpec) and file.protocol.measure != "set":
        raise document.error(where, "stages need measure phases that are set", hint="leave `protocol.measure` out")


def instances(study: Study) -> tuple[tuple[Arm, ...], ...]:
    """The arms by the instance that they are stages of; an arm by itself where there are no stages.

    Instances in the study's order, and the stages of each in the order of the factor's levels.
    """
    factor = study.stages
    if factor is None:
        return tuple((arm,) for arm in study.arms)
    found: dict[tuple[bool, frozenset[tuple[str, str]]], list[Arm]] = {}
    for arm in study.arms:
        others = frozenset((name, level) for name, level in arm.levels.items() if name != factor)
        found.setdefault((arm.control, others), []).append(arm)
    order = study.factors[factor]
    return tuple(tuple(sorted(arms, key=lambda arm: order.index(arm.levels[factor]))) for arms in found.values())
