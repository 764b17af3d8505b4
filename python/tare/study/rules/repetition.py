"""Rules for repetition: duets, measure phases chosen by a pilot, stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tare.study.model import Arm, ArmSettings, Study
from tare.study.protocol_spec import DuetSpec, InterleaveSpec, Repetition, Sequential
from tare.study.reading.baselines import Baselines
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import varies
from tare.study.reading.file import StudyFile
from tare.study.rules.refusal import Refusal
from tare.study.suggest import did_you_mean
from tare.study.values import CgroupPlace, cpu_set
from tare.workloads import Parameters

FEWEST_WINDOWS = 5
"""Least windows of a duet's measure phase: the first, the last and those at the swap are dropped, and each half
must keep one."""


LEAST_WINDOWS = 4
"""Least windows of a chosen measure phase and of the pilot: fewer would hide an unfinished warm-up from the
validity rule that checks for it."""
_WHERE: KeyPath = ("protocol", "measure")
_THROUGHPUT = "throughput"


def refuse_duet(spec: Repetition, settings: ArmSettings, parameters: Parameters) -> Refusal | None:
    """Return the first reason why an arm cannot run in a duet; `None` if it can or there is no duet."""
    if not isinstance(spec, DuetSpec):
        return None
    return next(_duet_faults(spec, settings, parameters), None)


def _duet_faults(spec: DuetSpec, settings: ArmSettings, parameters: Parameters) -> Iterator[Refusal]:
    name: KeyPath = ("protocol", "name")
    if why := parameters.waits_for_disk:
        why_not = f"a duet does not suit I/O-bound work: {why}, which both arms share"
        yield _refusal((name, ("workload",)), why_not, "use `interleave`")
    if settings.sut.storage.device is not None:
        why_not = (
            f"both arms of a duet run at once and cannot both have their data on {settings.sut.storage.device}"
        )
        keys: tuple[KeyPath, ...] = (("sut", "storage", "device"), name)
        yield _refusal(
            keys, why_not, "leave `device` out, then each node has its own loop device; or use `interleave`"
        )
    if settings.sut.storage.kind == "nfs":
        why_not = "an NFS server uses CPUs outside both sets, and both arms would share its disk"
        yield _refusal((("sut", "storage", "kind"), name), why_not, "use another storage, or `interleave`")
    for side, placement in settings.sides.items():
        if placement.limits.cpus is not None:
            why_not = f"a duet places its two arms itself, on the CPUs {' and '.join(spec.cpus)} in turn"
            yield _refusal(((side, "limits", "cpus"), name), why_not, "leave the key out, or use `interleave`")
        if placement.cgroup is CgroupPlace.ROOT:
            why_not = "an arm in the root control group cannot be pinned to CPUs"
            yield _refusal(((side, "cgroup"), name), why_not, "use `cgroup: run`")
        quota = placement.limits.cpu_quota
        if quota is not None and quota > (most := len(cpu_set(spec.cpus[0]))):
            why_not = f"each arm of this duet has {most} of the CPUs, so a quota of {quota:g} would limit nothing"
            yield _refusal(((side, "limits", "cpu_quota"), name), why_not, "lower it, or leave it out")
    if parameters.measure_s < FEWEST_WINDOWS * parameters.window_s:
        why_not = (
            f"a duet swaps CPUs half-way and drops the windows around that: {parameters.measure_s:g} s hold "
            f"fewer than {FEWEST_WINDOWS} windows of {parameters.window_s:g} s"
        )
        yield _refusal((("workload", "measure_s"), name), why_not, "make it longer, or window_s shorter")


def _refusal(keys: tuple[KeyPath, ...], why: str, hint: str) -> Refusal:
    return Refusal(keys, why, hint)


def check_measuring(document: Document, protocol: Repetition, arms: Sequence[Arm]) -> None:
    """Raise `StudyError` if arms differ in what a pilot chooses, or the pilot would be too short."""
    if not isinstance(protocol, InterleaveSpec) or protocol.measure != "auto":
        return
    for key in ("measure_s", "window_s"):
        values = {float(arm.settings.workload[key]) for arm in arms}
        if len(values) > 1:
            what = f"workload.{key} differs between arms, so one length cannot be chosen for all"
            raise document.error(_WHERE, what, hint="omit measure, or use the same value in all arms")
    workload = arms[0].settings.workload
    least = LEAST_WINDOWS * float(workload["window_s"])
    if float(workload["measure_s"]) < least:
        what = f"a pilot needs {LEAST_WINDOWS} windows per run: workload.measure_s of {least:g} s at least"
        raise document.error(("workload", "measure_s"), what)
    if protocol.measure_most_s is not None and protocol.measure_most_s < least:
        what = f"a measure phase needs {LEAST_WINDOWS} windows: {least:g} s at least"
        raise document.error(("protocol", "measure_most_s"), what)


def check_looks(document: Document, file: StudyFile) -> None:
    """Raise `StudyError` if sign flips lack mirrored pairs, or two margins of throughput differ."""
    protocol = file.protocol
    if not isinstance(protocol, Sequential):
        return
    if protocol.anytime == "sign-flip" and file.conditions:
        what = "sign flips need mirrored pairs of blocks, and the separate blocks of conditions break these up"
        raise document.error(("protocol", "anytime"), what, hint="use `t-mixture`")
    declared = (file.margins or {}).get(_THROUGHPUT)
    if protocol.margin is not None and declared not in {None, protocol.margin}:
        what = f"the margin {protocol.margin:g} differs from margins.throughput, {declared:g}"
        raise document.error(("protocol", "margin"), what, hint="omit margins.throughput, or use the same value")


def margins_of(file: StudyFile) -> Mapping[str, float]:
    """Return the declared margins, and for throughput the margin that the study ends by."""
    margin = file.protocol.margin if isinstance(file.protocol, Sequential) else None
    return {**({} if margin is None else {_THROUGHPUT: margin}), **(file.margins or {})}


def check_stages(
    document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], baseline: Baselines
) -> None:
    """Raise `StudyError` if a factor cannot form stages, or the baseline does not have one for each stage."""
    where: KeyPath = ("stages",)
    factor = file.stages
    if factor is None:
        return
    if factor not in names:
        raise document.error(
            where, f"there is no factor {factor!r}", hint=did_you_mean(factor, names, kind="factors")
        )
    if factor in file.conditions:
        what = f"{factor!r} is a condition, over which findings are averaged; stages are not repetitions"
        raise document.error(where, what, hint="leave it out of `conditions`")
    for key in varies(file.factors[factor]):
        if not key.startswith("workload.") or key == "workload.name":
            what = f"{factor!r} sets {key}, but all stages run on one unchanged server"
            raise document.error(where, what, hint="only keys of the workload may differ between stages")
    if not baseline.levels or factor in baseline.levels:
        others = ", ".join(f"{name}: LEVEL" for name in names if name not in {factor, *file.conditions})
        what = "each stage has its own baseline, so the baseline must name levels of the other factors only"
        raise document.error(("baseline",), what, hint=f"baseline: {{{others}}}")
    if isinstance(file.protocol, DuetSpec):
        raise document.error(where, "a duet drives two arms at once, and has no stages", hint="use `interleave`")
    if isinstance(file.protocol, InterleaveSpec) and file.protocol.measure != "set":
        raise document.error(where, "stages need a fixed measure phase", hint="leave `protocol.measure` out")


def instances(study: Study) -> tuple[tuple[Arm, ...], ...]:
    """Return the arms grouped by the instance that they are stages of; without stages, each arm by itself.

    Instances are in the study's order, and the stages of each in the order of the factor's levels.
    """
    factor = study.stages
    if factor is None:
        return tuple((arm,) for arm in study.arms)
    groups: dict[tuple[bool, frozenset[tuple[str, str]]], list[Arm]] = {}
    for arm in study.arms:
        others = frozenset((name, level) for name, level in arm.levels.items() if name != factor)
        groups.setdefault((arm.control, others), []).append(arm)
    order = study.factors[factor]
    return tuple(tuple(sorted(arms, key=lambda arm: order.index(arm.levels[factor]))) for arms in groups.values())
