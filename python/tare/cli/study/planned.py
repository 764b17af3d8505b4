"""Load and expand a study, for `tare plan`, `run`, `sweep` and `weigh`."""

from __future__ import annotations

from tare.plan.datasets import data_sets, refuse_io_bound
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.study.catalogue import find_study
from tare.study.model import Arm, MonitorSpec, Study
from tare.study.reading.load import load
from tare.study.registry import Registry, installed
from tare.workloads.registry import WORKLOADS


def planned(study: str, scale: str | None, seed: int | None, blocks: int | None, *, profile: bool = False) -> Plan:
    """Load a study at a scale and expand it; `seed` and `blocks` replace the study's own. Raises `StudyError`.

    `profile`: sample the stacks of every run, where the host allows it.
    """
    opened = loaded(study, scale)
    if profile:
        opened = profiled(opened)
    if blocks is not None:
        protocol = opened.protocol.model_copy(update={"blocks": blocks})
        opened = opened.model_copy(update={"protocol": protocol})
    made = expand(opened, seed)
    refuse_io_bound(made, data_sets(WORKLOADS))
    return made


def profiled(study: Study) -> Study:
    """Add the monitor `profile` to every arm that does not set it itself."""
    spec = MonitorSpec(optional=True)

    def with_profile(arm: Arm) -> Arm:
        placed = arm.placed
        if placed is None:
            return arm
        monitors = {"profile": spec, **placed.monitors}
        return arm.model_copy(update={"placed": placed.model_copy(update={"monitors": monitors})})

    return study.model_copy(update={"arms": tuple(map(with_profile, study.arms))})


def loaded(study: str, scale: str | None) -> Study:
    """Load a study at a scale. Raises `StudyError`."""
    return load(find_study(study), known(), scale)


def known() -> Registry:
    """Registry of the names that a study may use."""
    return installed()
