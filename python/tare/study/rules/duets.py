"""What a duet is refused for before anything is started: whatever would make its two arms disturb each other."""

from __future__ import annotations

from collections.abc import Iterator

from tare.study.model import ArmSettings
from tare.study.protocol_spec import DuetSpec, Repetition
from tare.study.reading.document import KeyPath
from tare.study.rules.placement import Refusal
from tare.study.values import CgroupPlace, cpu_set
from tare.workloads import Parameters

FEWEST_WINDOWS = 5
"""Of a measure phase: the first, the last and what touches the swap are dropped, and each half is to keep one."""


def refuse(spec: Repetition, settings: ArmSettings, parameters: Parameters) -> Refusal | None:
    """The first reason why an arm cannot stand in a duet, `None` where it can or there is no duet."""
    if not isinstance(spec, DuetSpec):
        return None
    return next(_reasons(spec, settings, parameters), None)


def _reasons(spec: DuetSpec, settings: ArmSettings, parameters: Parameters) -> Iterator[Refusal]:
    name: KeyPath = ("protocol", "name")
    if why := parameters.waits_for_disk:
        told = f"a duet is no protocol for I/O-bound work: {why}, which both arms share"
        yield _refusal((name, ("workload",)), told, "use `interleave`")
    if settings.sut.storage.device is not None:
        told = f"both arms of a duet run at once and cannot both have their data on {settings.sut.storage.device}"
        keys: tuple[KeyPath, ...] = (("sut", "storage", "device"), name)
        yield _refusal(
            keys, told, "leave `device` out, then each has a loop device of its own; or use `interleave`"
        )
    if settings.sut.storage.kind == "nfs":
        told = "an NFS server works outside of both sets of CPUs, and for both arms on the disk that they share"
        yield _refusal((("sut", "storage", "kind"), name), told, "use another storage, or `interleave`")
    for side, placement in settings.sides.items():
        if placement.limits.cpus is not None:
            told = f"in a duet the protocol places both arms, on the CPUs {' and '.join(spec.cpus)} in turn"
            yield _refusal(((side, "limits", "cpus"), name), told, "leave the key out, or use `interleave`")
        if placement.cgroup is CgroupPlace.ROOT:
            told = "in the root control group no arm can be kept to CPUs of its own"
            yield _refusal(((side, "cgroup"), name), told, "use `cgroup: run`")
        quota = placement.limits.cpu_quota
        if quota is not None and quota > (most := len(cpu_set(spec.cpus[0]))):
            told = f"each arm of this duet has {most} of the CPUs, so a quota of {quota:g} would limit nothing"
            yield _refusal(((side, "limits", "cpu_quota"), name), told, "lower it, or leave it out")
    if parameters.measure_s < FEWEST_WINDOWS * parameters.window_s:
        told = (
            f"a duet swaps CPUs half-way and drops the windows around that: {parameters.measure_s:g} s hold "
            f"fewer than {FEWEST_WINDOWS} windows of {parameters.window_s:g} s"
        )
        yield _refusal((("workload", "measure_s"), name), told, "make it longer, or window_s shorter")


def _refusal(keys: tuple[KeyPath, ...], why: str, hint: str) -> Refusal:
    return Refusal(keys, why, hint)
