"""Who was at their limit, and who else used the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tare.analyze.guilt import client_share, guilt_of
from tare.analyze.metrics import sut_cpu_s
from tare.analyze.numbers import number_at
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share, shift, slope_within
from tare.run.record import RunRecord

BUSY = 0.9
"""Of the CPU time that a side may use. From there on waiting grows with 1 / (1 - utilisation): 10 times the service
time in an M/M/1 queue (Kleinrock, Queueing Systems I, 1975), so that the busier side sets the rate."""
STEAL = 0.005
"""Share of machine time. Half a percent of it moves throughput by as much, a quarter of the target width of 2 %."""
OTHERS = 0.02
"""Share of machine time: work that neither side did, nor docker-proxy, nor what serves a storage. More than that is
the size of the target."""
NOISE = 0.01
"""Effect from the least to the most of a block: half of the target width."""
OWN = 0.5
"""Of a latency: from there on more of it is the client's than everybody else's together."""
WAITING = BUSY**2
"""Of the time, in which a thread waits for a CPU: as often as at `BUSY` in an M/M/1 queue, where somebody waits
with probability utilisation². So a side is found that others keep from the CPU that it may use."""
THROTTLED = 0.5
"""Of the enforcement periods: its quota ran out in more of them than it did not."""


def client_bottleneck(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm the client was at the end of its CPU time and the SUT was not.

    That is: it used `BUSY` of what it may use (and has threads for), or waited for a CPU `WAITING` of the time, or
    was throttled by its quota in `THROTTLED` of the periods. What is measured then is the client: every arm seems
    alike, or differs by what it costs the client.
    """
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


def client_latency(evidence: Evidence) -> Iterator[Alarm]:
    """Around a percentile, the client itself made `OWN` of the latency or more, in the median of an arm's runs.

    By what tare-load tells: requests sent late, and replies that lay unread. Such a percentile is void: it says
    how busy the client was.
    """
    for arm in evidence.arms:
        good = evidence.good(arm)
        shares = {name: one.client for name, one in guilt_of(good).items() if one.client >= OWN}
        if shares:
            parts = ", ".join(f"{share(part)} of {name}" for name, part in shares.items())
            bad = [run for run in good if any((client_share(run, name) or 0.0) >= OWN for name in shares)]
            yield Alarm(
                "client-latency",
                arm,
                f"the client made {parts}, by sending late or leaving replies unread: "
                f"{'this percentile is' if len(shares) == 1 else 'these percentiles are'} void",
                ids(bad),
                "give the client separate CPUs (client.limits), fewer connections per thread or a lower rate",
            )


def machine_shift(evidence: Evidence) -> Iterator[Alarm]:
    """Steal, or work of others, differs between an arm and the baseline in the same blocks.

    By more than `STEAL` or `OTHERS` in the mean, and by a t interval of 99 % over blocks that leaves zero out. Idle
    time that the arms' own use explains is no alarm: what is left over is what others worked.
    """
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
    """Within the blocks and whatever the arm, runs are slower the more of the machine was taken away from them.

    By `slope_within` on the share that the hypervisor stole, and on that of other programs. Alarm: t of 99 %, and
    from the least to the most of a block throughput falls by more than `NOISE`. A rise is none: a faster run makes
    more work in the kernel, which counts as that of others.
    """
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


def between(shares: Sequence[float]) -> str:
    """`1.2 % to 3.4 %`; what is left over of a machine's time is below zero only by the error of its counters."""
    least, most = min(shares), max(shares)
    return f"up to {share(most)}" if least < 0 else f"{share(least)} to {share(most)}"


def clock_step(evidence: Evidence) -> Iterator[Alarm]:
    """The wall clock went further than the monotonic one in a measure phase, or less far.

    By more than 50 ms and 500 ppm, the fastest that the kernel slews (adjtimex(2)): somebody set the clock. tare's
    durations are monotonic, but a generator or server that times by the wall clock is wrong.
    """
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
    wall, monotonic = (number_at(run.usage, (key,)) for key in ("wall_s", "monotonic_s"))
    return wall is not None and monotonic is not None and abs(wall - monotonic) > 0.05 + 5e-4 * monotonic


def _use(run: RunRecord, side: str) -> float | None:
    used, cpus = _used(run, side), number_at(run.usage, (f"{side}_cpus",))
    seconds = number_at(run.usage, ("monotonic_s",))
    return used / (cpus * seconds) if used is not None and cpus and seconds else None


def _used(run: RunRecord, side: str) -> float | None:
    return sut_cpu_s(run) if side == "sut" else number_at(run.usage, (f"{side}_cpu_s",))


def _sides(run: RunRecord) -> tuple[str, ...]:
    """A program that is itself the SUT has no client, which is not the same as one whose time is unknown."""
    return ("sut",) if run.settings.get("client", "") is None else ("sut", "client")


def _saturation(run: RunRecord, side: str, key: str) -> float | None:
    return number_at(run.usage, ("saturation", side, key))


def busy(run: RunRecord, side: str) -> float | None:
    """Part of the CPU time that a side could use: by the trace, else by the counters around the phase.

    Without what the client polled, waiting for the next arrival to be due: it would have found time for a request.
    """
    traced = _saturation(run, side, "busy")
    used = _use(run, side) if traced is None else traced
    if used is None or side == "sut":
        return used
    polled_s = number_at(run.measurement, ("details", "client_polled_s"))
    cpus = _saturation(run, side, "cpus") if traced is not None else number_at(run.usage, ("client_cpus",))
    seconds = number_at(run.measurement, ("duration_s",))
    return max(0.0, used - polled_s / (cpus * seconds)) if polled_s and cpus and seconds else used


def _at_limit(run: RunRecord, side: str) -> bool:
    """A side of which nothing is known is not called busy; the SUT then is not called idle either."""
    reached = limit_reached(run, side)
    return side == "sut" if reached is None else reached


def limit_reached(run: RunRecord, side: str) -> bool | None:
    """Whether the side was at the end of its CPU time, as `client_bottleneck` has it; `None`: nothing is known."""
    limits = (
        (busy(run, side), BUSY),
        (_saturation(run, side, "waiting"), WAITING),
        (_saturation(run, side, "throttled"), THROTTLED),
    )
    known = [(value, limit) for value, limit in limits if value is not None]
    return any(value >= limit for value, limit in known) if known else None


def _limit_of(runs: Sequence[RunRecord], side: str) -> str:
    """What a side did in the runs in which it did most of it."""
    used = [value for run in runs if (value := busy(run, side)) is not None]
    reasons = [f"used {share(max(used))} of the CPU time that it could use"] if used else []
    for key, limit, words in (("waiting", WAITING, "waited for a CPU"), ("throttled", THROTTLED, "was throttled")):
        most = max((value for run in runs if (value := _saturation(run, side, key)) is not None), default=0.0)
        if most >= limit:
            reasons.append(f"{words} {share(most)} of the time")
    return " and ".join(reasons) or "did an unknown amount of work"


def part_of_machine(run: RunRecord, kind: str) -> float | None:
    """Share of the machine's time: `idle` (`iowait` too), `iowait`, `steal`, or `others`, no part of the run."""
    machine: Mapping[str, Any] = (run.usage or {}).get("machine") or {}
    total = sum(machine.values())
    if not total or "steal" not in machine:
        return None
    if kind in ("steal", "iowait"):
        return float(machine[kind] / total) if kind in machine else None
    if kind == "idle":
        return float((machine.get("idle", 0.0) + machine.get("iowait", 0.0)) / total)
    # A client on another machine is no part of this one's time; on one kernel both hosts have the same.
    apart = run.between is not None and not run.between.get("one_boot")
    own = [_used(run, side) for side in _sides(run) if not (apart and side == "client")]
    if (run.path or {}).get("hop") == "docker-proxy":
        own.append(number_at(run.usage, ("proxy_cpu_s",)))
    if (served := number_at(run.usage, ("storage_cpu_s",))) is not None:
        own.append(served)
    known = [each for each in own if each is not None]
    if len(known) < len(own):
        return None
    mine = sum(known)
    away = sum(machine.get(mode, 0.0) for mode in ("idle", "iowait", "steal"))
    return float((total - away - mine) / total)
