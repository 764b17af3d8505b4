"""The plan that a command line names."""

from __future__ import annotations

from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.study.catalogue import find_study
from tare.study.load import load
from tare.study.registry import installed


def planned(study: str, scale: str | None, seed: int | None, blocks: int | None) -> Plan:
    """The study at that scale, expanded; `blocks` and `seed` stand in for its own. Raises `StudyError`."""
    loaded = load(find_study(study), installed(), scale)
    if blocks is not None:
        protocol = loaded.protocol.model_copy(update={"blocks": blocks})
        loaded = loaded.model_copy(update={"protocol": protocol})
    return expand(loaded, seed)
