"""What cannot take turns: refused where the study is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tare.deployments import MACHINES, POD
from tare.deployments.defaults import CPU_PERIOD_US
from tare.study.model import Arm, ArmSettings, Placement
from tare.study.protocol_spec import Repetition, RotateSpec
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.file import StudyFile
from tare.study.rules.refusal import Refusal
from tare.study.values import CgroupPlace
from tare.workloads import Parameters
from tare.workloads.turns import TURN_TAKERS

_NAME: KeyPath = ("protocol", "name")
_INSTEAD = "use `interleave`"
_PERIOD_MS = CPU_PERIOD_US / 1000
_BY_TARE_LOAD: Mapping[str, str] = {
    "sysbench": "use tare-load with `sysbench: {script: ...}`, which runs sysbench's scripts",
    "ycsb": "use tare-load with `ycsb: {...}`, which reads YCSB's property files",
}


def refuse_rotation(spec: Repetition, settings: ArmSettings, parameters: Parameters) -> Refusal | None:
    """Return the first reason why an arm cannot take turns; `None` if it can or there is no rotation."""
    if not isinstance(spec, RotateSpec):
        return None
    return next(_faults(spec, settings, parameters), None)


def _faults(spec: RotateSpec, settings: ArmSettings, parameters: Parameters) -> Iterator[Refusal]:
    workload = settings.workload_name
    if workload not in TURN_TAKERS:
        hint = _BY_TARE_LOAD.get(workload, _INSTEAD)
        yield Refusal((("workload", "name"), _NAME), f"{workload} cannot take turns", hint)
    elif (why := TURN_TAKERS[workload].refusal(parameters)) is not None:
        yield Refusal((("workload",), _NAME), why, _INSTEAD)
    if why := parameters.waits_for_disk:
        why_not = f"{why}, and one arm's writes would be flushed in another's turn"
        yield Refusal((("workload",), _NAME), why_not, _INSTEAD)
    if settings.sut.nodes > 1:
        yield Refusal((("sut", "nodes"), _NAME), "clusters cannot take turns yet", _INSTEAD)
    if settings.sut.storage.device is not None or settings.sut.storage.kind == "nfs":
        why_not = "the arms' servers run at once and cannot share one device or NFS server"
        yield Refusal((("sut", "storage"), _NAME), why_not, _INSTEAD)
    for side, placement in settings.sides.items():
        yield from _faults_of(side, placement, spec)


def _faults_of(side: str, placement: Placement, spec: RotateSpec) -> Iterator[Refusal]:
    if placement.deployment in MACHINES or placement.deployment == POD:
        why_not = "virtual machines and pods cannot take turns yet"
        yield Refusal(((side, "deployment"), _NAME), why_not, _INSTEAD)
    if placement.limits.cpu_quota is not None and (why := _unlike_a_run(spec)) is not None:
        hint = f"set protocol.turn_ms to {4 * _PERIOD_MS:g} and settle_ms to {_PERIOD_MS:g}, or {_INSTEAD}"
        yield Refusal(((side, "limits", "cpu_quota"), _NAME), why, hint)
    if spec.cpus is not None and placement.limits.cpus is not None:
        why_not = f"`rotate` places servers on the CPUs {spec.cpus[0]} and clients on {spec.cpus[1]}"
        hint = "leave the key out, or set protocol.cpus to null"
        yield Refusal(((side, "limits", "cpus"), _NAME), why_not, hint)
    if spec.cpus is not None and placement.cgroup is CgroupPlace.ROOT:
        why_not = "an arm in the root control group cannot be pinned to CPUs"
        yield Refusal(((side, "cgroup"), _NAME), why_not, "use `cgroup: run`, or set protocol.cpus to null")


def _unlike_a_run(spec: RotateSpec) -> str | None:
    """Return why turns hold back an arm with a CPU quota less or more than a run would; `None` if they do not.

    The kernel grants the quota anew in each period (kernel documentation, scheduler/sched-bwc): an arm driven for
    less than that is never held back, and half a turn must be a whole number of periods.
    """
    turn_ms, settle_ms = spec.turn_ms or 0.0, spec.settle_ms or 0.0
    if turn_ms and turn_ms % (2 * _PERIOD_MS) == 0 and settle_ms >= _PERIOD_MS:
        return None
    return (
        f"a CPU quota is granted for each {_PERIOD_MS:g} ms, so turns must last a multiple of "
        f"{2 * _PERIOD_MS:g} ms and settle for {_PERIOD_MS:g} ms; shorter ones would not be held back"
    )


def check_rotation(document: Document, file: StudyFile, stages: str | None, arms: Sequence[Arm]) -> None:
    """Raise `StudyError` for stages and conditions, or if arms differ in the lengths that their turns add up to."""
    if not isinstance(file.protocol, RotateSpec):
        return
    for key, given in (("stages", stages), ("conditions", file.conditions)):
        if given:
            raise document.error((key,), f"arms that take turns have no {key} yet", hint=_INSTEAD)
    for key in ("warmup_s", "measure_s"):
        if len({float(arm.settings.workload[key]) for arm in arms}) > 1:
            what = f"workload.{key} differs between arms, which take turns for the same time"
            raise document.error(("workload", key), what, hint="use the same value in all arms")
