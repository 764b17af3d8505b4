"""A duet whose data do not fit into memory would wait for the disk, which both of its arms share."""

from __future__ import annotations

from collections.abc import Callable

from tare.errors import StudyError
from tare.plan.estimate import DataSet
from tare.plan.model import Plan
from tare.study.model import ArmSettings, DuetSpec
from tare.study.values import size_bytes


def refuse_io_bound(plan: Plan, data_set: Callable[[ArmSettings], DataSet]) -> None:
    """Raise `StudyError` where an arm of a duet may use less memory than its data take, where both are known."""
    if not isinstance(plan.study.protocol, DuetSpec):
        return
    for arm in plan.study.arms:
        limit, size = arm.settings.sut.limits.memory, data_set(arm.settings).size_bytes
        if limit is not None and size is not None and size_bytes(limit) < size:
            raise StudyError(
                f"study {plan.study.name}: a duet is no protocol for I/O-bound work: arm {arm.name!r} may use "
                f"{size_bytes(limit) / 2**20:.0f} MiB of memory, and its data take about {size / 2**20:.0f} MiB",
                hint="raise sut.limits.memory, load less data, or use `interleave`",
            )
