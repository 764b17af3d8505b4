"""Rules of CPU time and of the machine as they are meant: one run after the other.

What tare works out over columns of all runs is held equal to these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from tests.unit.record.parts import as_tree

from tare.analyze.derived import sut_cpu_s
from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.numbers import number_at
from tare.analyze.validity.blocks import ORDER
from tare.analyze.validity.evidence import Alarm, Evidence, Slope, ids, share, shift
from tare.analyze.validity.load import BUSY, NOISE, OTHERS, STEAL, THROTTLED, WAITING, between
from tare.record.run_record import RunRecord


def client_bottleneck(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.arms:
        good = evidence.good(arm)
        bound = [run for run in good if _at_limit(run, "client") and not _at_limit(run, "sut")]
        if 2 * len(bound) > len(good):
            yield Alarm(
                "client-bottleneck",
                arm,
                f"the client {_limit_of(bound, 'client')} and the SUT {_limit_of(bound, 'sut')}: the client "
                "limited the rate",
                ids(bound),
                "give the client more CPUs (client.limits) or the SUT fewer, or use a cheaper generator; if it "
                "waited for CPUs without using them, find what did (`tare doctor`)",
            )


def machine_shift(evidence: Evidence) -> Iterator[Alarm]:
    if evidence.runs.at_once:
        return  # both arms have the same machine at the same time, and each is the other's "others"
    kinds = (("steal", STEAL, "time stolen by the hypervisor"), ("others", OTHERS, "work of other programs"))
    baselines = {arm: evidence.study.baseline_of(arm) for arm in evidence.arms}
    for arm, baseline in ((arm, baseline) for arm, baseline in baselines.items() if arm != baseline):
        base = {run.block: run for run in evidence.good(baseline)}
        good = [run for run in evidence.good(arm) if run.block in base]
        for kind, least, words in kinds:
            pairs = [(part_of_machine(run, kind), part_of_machine(base[run.block], kind)) for run in good]
            difference = shift([one - other for one, other in pairs if one is not None and other is not None])
            if difference and difference.real and abs(difference.mean) > least:
                way = "more" if difference.mean > 0 else "less"
                yield Alarm(
                    "machine-shift",
                    arm,
                    f"{words} took {share(abs(difference.mean))} {way} of the machine than in the baseline's runs",
                    ids(good),
                    "find out what else runs (`tare doctor`), or use a dedicated machine",
                )


def machine_noise(evidence: Evidence) -> Iterator[Alarm]:
    if evidence.runs.at_once:
        return
    for kind, words in (("steal", "the hypervisor stole"), ("others", "other programs took")):
        slope = slope_within(evidence, partial(part_of_machine, kind=kind))
        if slope is not None and slope.real and slope.over(slope.range) < -NOISE:
            good = [run for arm in evidence.arms for run in evidence.good(arm)]
            known = [part for run in good if (part := part_of_machine(run, kind)) is not None]
            yield Alarm(
                "machine-noise",
                None,
                f"{words} {between(known)} of the machine, and a run is "
                f"{share(-slope.over(0.01))} slower for each percent: this, not the arms, makes the intervals wide",
                ids(good),
                "use a dedicated machine, or run more blocks",
            )


def clock_step(evidence: Evidence) -> Iterator[Alarm]:
    stepped = [run for arm in evidence.arms for run in evidence.good(arm) if _stepped(run)]
    if stepped:
        yield Alarm(
            "clock-step",
            None,
            "the wall clock was stepped during these runs",
            ids(stepped),
            "have the clock slewed, not stepped, during studies (chrony: no makestep), and run them again",
        )


def _stepped(run: RunRecord) -> bool:
    wall, monotonic = (number_at(as_tree(run.usage), (key,)) for key in ("wall_s", "monotonic_s"))
    return wall is not None and monotonic is not None and abs(wall - monotonic) > 0.05 + 5e-4 * monotonic


def _use(run: RunRecord, side: str) -> float | None:
    used, cpus = _used(run, side), number_at(as_tree(run.usage), (f"{side}_cpus",))
    seconds = number_at(as_tree(run.usage), ("monotonic_s",))
    return used / (cpus * seconds) if used is not None and cpus and seconds else None


def _used(run: RunRecord, side: str) -> float | None:
    return sut_cpu_s(run) if side == "sut" else number_at(as_tree(run.usage), (f"{side}_cpu_s",))


def _sides(run: RunRecord) -> tuple[str, ...]:
    return ("sut",) if run.settings.get("client", "") is None else ("sut", "client")


def _saturation(run: RunRecord, side: str, key: str) -> float | None:
    return number_at(as_tree(run.usage), ("saturation", side, key))


def busy(run: RunRecord, side: str) -> float | None:
    traced = _saturation(run, side, "busy")
    used = _use(run, side) if traced is None else traced
    if used is None or side == "sut":
        return used
    polled_s = number_at(run.measurement, ("details", "client_polled_s"))
    cpus = _saturation(run, side, "cpus") if traced is not None else number_at(as_tree(run.usage), ("client_cpus",))
    seconds = (run.usage and run.usage.turns_s) or number_at(run.measurement, ("duration_s",))
    return max(0.0, used - polled_s / (cpus * seconds)) if polled_s and cpus and seconds else used


def _at_limit(run: RunRecord, side: str) -> bool:
    reached = limit_reached(run, side)
    return side == "sut" if reached is None else reached


def limit_reached(run: RunRecord, side: str) -> bool | None:
    limits = (
        (busy(run, side), BUSY),
        (_saturation(run, side, "waiting"), WAITING),
        (_saturation(run, side, "throttled"), THROTTLED),
    )
    known = [(value, limit) for value, limit in limits if value is not None]
    return any(value >= limit for value, limit in known) if known else None


def _limit_of(runs: Sequence[RunRecord], side: str) -> str:
    used = [value for run in runs if (value := busy(run, side)) is not None]
    reasons = [f"used {share(max(used))} of the CPU time that it could use"] if used else []
    for key, limit, words in (("waiting", WAITING, "waited for a CPU"), ("throttled", THROTTLED, "was throttled")):
        most = max((value for run in runs if (value := _saturation(run, side, key)) is not None), default=0.0)
        if most >= limit:
            reasons.append(f"{words} {share(most)} of the time")
    return " and ".join(reasons) or "did an unknown amount of work"


def part_of_machine(run: RunRecord, kind: str) -> float | None:
    machine: Mapping[str, Any] = as_tree(run.usage).get("machine") or {}
    total = sum(machine.values())
    if not total or "steal" not in machine:
        return None
    if kind in ("steal", "iowait"):
        return float(machine[kind] / total) if kind in machine else None
    if kind == "idle":
        return float((machine.get("idle", 0.0) + machine.get("iowait", 0.0)) / total)
    # A client on another machine is no part of this one's time; on one kernel both hosts have the same.
    apart = run.between is not None and not run.between.one_boot
    own = [_used(run, side) for side in _sides(run) if not (apart and side == "client")]
    if run.path is not None and run.path.hop in ("docker-proxy", "rootlessport", "slirp4netns", "pasta"):
        own.append(number_at(as_tree(run.usage), ("proxy_cpu_s",)))
    if (served := number_at(as_tree(run.usage), ("storage_cpu_s",))) is not None:
        own.append(served)
    known = [each for each in own if each is not None]
    if len(known) < len(own):
        return None
    mine = sum(known)
    away = sum(machine.get(mode, 0.0) for mode in ("idle", "iowait", "steal"))
    return float((total - away - mine) / total)


def slope_within(evidence: Evidence, regressor: Callable[[RunRecord], float | None]) -> Slope | None:
    rows = []
    for block in evidence.runs.blocks:
        pairs = [_pair(evidence.runs.good.get((block, arm)), regressor) for arm in evidence.arms]
        known = [each for each in pairs if each is not None]
        if len(known) == len(pairs):
            rows.append(known)
    free = (len(rows) - 1) * (len(evidence.arms) - 1) - 1
    if len(rows) < 4 or free < 3:
        return None
    raw = np.asarray(rows, dtype=float)
    x, y = _two_way(raw[:, :, 0]), _two_way(raw[:, :, 1])
    if float((x * x).sum()) < 1e-9:
        return None
    slope = float((x * y).sum() / (x * x).sum())
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / free / float((x * x).sum()))
    return Slope(
        slope, abs(slope) > float(stdtrit(free, 0.995)) * error, float(np.ptp(raw[:, :, 0], axis=1).mean())
    )


def _pair(run: RunRecord | None, regressor: Callable[[RunRecord], float | None]) -> tuple[float, float] | None:
    if run is None:
        return None
    at, value = regressor(run), METRICS[PRIMARY].of(run)
    return None if at is None or value is None or value <= 0 else (at, math.log(value))


def _two_way(table: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return centred


def order_effect(evidence: Evidence) -> Iterator[Alarm]:
    slope = slope_within(evidence, lambda run: float(run.position))
    if slope is None or not slope.real:
        return
    whole = slope.over(len(evidence.arms) - 1)
    if abs(whole) > ORDER:
        way = "faster" if whole > 0 else "slower"
        yield Alarm(
            "order-effect",
            None,
            f"the last run of a block is {share(abs(whole))} {way} than the first, whatever its arm",
            (),
            "let the machine rest between runs (workload.cooldown_s); look for leftover processes or dirty pages",
        )
