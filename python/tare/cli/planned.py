"""The plan that a command line names."""

from __future__ import annotations

from tare.plan.datasets import data_sets
from tare.plan.duet import refuse_io_bound
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.study.catalogue import find_study
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import Registry, installed
from tare.workloads.registry import WORKLOADS


def planned(study: str, scale: str | None, seed: int | None, blocks: int | None) -> Plan:
    """The study at that scale, expanded; `blocks` and `seed` stand in for its own. Raises `StudyError`."""
    found = loaded(study, scale)
    if blocks is not None:
        protocol = found.protocol.model_copy(update={"blocks": blocks})
        found = found.model_copy(update={"protocol": protocol})
    made = expand(found, seed)
    refuse_io_bound(made, data_sets(WORKLOADS))
    return made


def loaded(study: str, scale: str | None) -> Study:
    """The study that is meant, at that scale. Raises `StudyError`."""
    return load(find_study(study), known(), scale)


def known() -> Registry:
    """The names that it may use."""
    return installed()
