"""Rules on load: sides at their limit, and other users of the machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tare.analyze.columns import Column, Columns, Rows, figure, known, known_values, or_zero, ratio, reached
from tare.analyze.derived import is_carried, sut_cpu_column, usage_seconds
from tare.analyze.latency_split import client_share, has_latency_parts, latency_split_of
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share, shift, slope_within
from tare.protocols.registry import PROTOCOLS
from tare.record.run_record import RunRecord

BUSY = 0.9
"""Share of the CPU time available to a side. Waiting grows with 1 / (1 - utilisation); at this share it is 10 times
the service time of an M/M/1 queue (Kleinrock, Queueing Systems I, 1975), so the busier side limits the rate."""
STEAL = 0.005
"""Share of machine time. Half a percent changes throughput by as much: a quarter of the target width of 2 %."""
OTHERS = 0.02
"""Share of machine time used by none of: SUT, client, docker-proxy, servers of a storage. The limit is the target
width."""
NOISE = 0.01
"""Effect over the range within a block: half of the target width."""
OWN = 0.5
"""Share of a latency: from here on, the client causes at least as much as everything else together."""
WAITING = BUSY**2
"""Share of the time in which a thread waits for a CPU: as at `BUSY` in an M/M/1 queue, where something waits with
probability utilisation². This finds a side that other programs keep from its CPUs."""
THROTTLED = 0.5
"""Share of the enforcement periods in which a side's quota ran out."""


def client_bottleneck(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm, the client exhausted its CPU time and the SUT did not.

    That is, the client used `BUSY` of the CPU time available to it (and to its threads), waited for a CPU `WAITING`
    of the time, or was throttled by its quota in `THROTTLED` of the periods. The study then measures the client:
    all arms seem alike, or differ by their cost to the client.
    """
    columns = evidence.columns
    # An unknown side counts as neither busy nor idle.
    is_bound = (limits_reached(columns, "client") == 1) & (limits_reached(columns, "sut") == 0)
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        bound = rows[is_bound[rows]]
        if 2 * len(bound) > len(rows):
            sides = [_limit_of(columns, bound, side) for side in ("client", "sut")]
            yield Alarm(
                "client-bottleneck",
                arm,
                f"the client {sides[0]} and the SUT {sides[1]}: the client limited the rate",
                evidence.ids(bound),
                "give the client more CPUs (client.limits) or the SUT fewer, or use a cheaper generator; if it "
                "waited for CPUs without using them, find what did (`tare doctor`)",
            )


def client_latency(evidence: Evidence) -> Iterator[Alarm]:
    """Around a percentile, the client caused at least `OWN` of the latency, in the median of an arm's runs.

    From the reports of tare-load: requests sent late, and replies that waited to be read. Such a percentile is
    void: it shows how busy the client was.
    """
    columns = evidence.columns
    apart = columns.where(has_latency_parts)
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        good = [columns.records[row] for row in rows[apart[rows]]]
        shares = {name: one.client for name, one in latency_split_of(good).items() if one.client >= OWN}
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
    """Steal, or work of other programs, differs between an arm and the baseline in the same blocks.

    By more than `STEAL` or `OTHERS` in the mean, and by a t interval of 99 % over blocks that excludes zero. A
    difference of idle time that the arms' own use explains raises no alarm.
    """
    if _at_the_same_time(evidence):
        return  # all arms have the same machine at the same time, and each is the others' "others"
    kinds = (("steal", STEAL, "time stolen by the hypervisor"), ("others", OTHERS, "work of other programs"))
    baselines = {arm: evidence.study.baseline_of(arm) for arm in evidence.arms}
    for arm, baseline in ((arm, baseline) for arm, baseline in baselines.items() if arm != baseline):
        rows, base = evidence.pairs(arm, baseline)
        for kind, least, words in kinds:
            parts = parts_of_machine(evidence.columns, kind)
            difference = shift(known_values(parts[rows] - parts[base]))
            if difference and difference.real and abs(difference.mean) > least:
                way = "more" if difference.mean > 0 else "less"
                yield Alarm(
                    "machine-shift",
                    arm,
                    f"{words} took {share(abs(difference.mean))} {way} of the machine than in the baseline's runs",
                    evidence.ids(rows),
                    "find out what else runs (`tare doctor`), or use a dedicated machine",
                )


def machine_noise(evidence: Evidence) -> Iterator[Alarm]:
    """Within blocks, whatever the arm, runs are slower the more of the machine others took.

    By `slope_within` on the share that the hypervisor stole, and on the share of other programs. Alarm: t of 99 %,
    and throughput falls by more than `NOISE` over the range within a block. A rise raises no alarm: a faster run
    causes more work in the kernel, which counts as work of others.
    """
    if _at_the_same_time(evidence):
        return
    for kind, words in (("steal", "the hypervisor stole"), ("others", "other programs took")):
        parts = parts_of_machine(evidence.columns, kind)
        slope = slope_within(evidence, parts)
        if slope is not None and slope.real and slope.over(slope.range) < -NOISE:
            yield Alarm(
                "machine-noise",
                None,
                f"{words} {between(known_values(parts))} of the machine, and a run is "
                f"{share(-slope.over(0.01))} slower for each percent: this, not the arms, makes the intervals wide",
                evidence.ids(evidence.all_rows),
                "use a dedicated machine, or run more blocks",
            )


def _at_the_same_time(evidence: Evidence) -> bool:
    return PROTOCOLS[evidence.study.protocol.name].as_one


def between(shares: Sequence[float]) -> str:
    """Format a range such as `1.2 % to 3.4 %`; a rest of machine time is negative only by counter errors."""
    least, most = min(shares), max(shares)
    return f"up to {share(most)}" if least < 0 else f"{share(least)} to {share(most)}"


def clock_step(evidence: Evidence) -> Iterator[Alarm]:
    """The wall clock and the monotonic clock disagree on the length of a measure phase.

    By more than 50 ms plus 500 ppm, the fastest rate at which the kernel slews (adjtimex(2)): the clock was set.
    tare's durations are monotonic, but a generator or server that uses the wall clock is wrong.
    """
    columns = evidence.columns
    wall, monotonic = columns.number("usage", "wall_s"), columns.number("usage", "monotonic_s")
    is_stepped = np.abs(wall - monotonic) > 0.05 + 5e-4 * monotonic
    stepped = evidence.all_rows[is_stepped[evidence.all_rows]]
    if len(stepped):
        yield Alarm(
            "clock-step",
            None,
            "the wall clock was stepped during these runs",
            evidence.ids(stepped),
            "have the clock slewed, not stepped, during studies (chrony: no makestep), and run them again",
        )


def busy(run: RunRecord, side: str) -> float | None:
    """`busy_parts` of a single run."""
    return figure(busy_parts(Columns((run,)), side))


def limit_reached(run: RunRecord, side: str) -> bool | None:
    """`limits_reached` of a single run; `None` if unknown."""
    value = figure(limits_reached(Columns((run,)), side))
    return None if value is None else value == 1


def part_of_machine(run: RunRecord, kind: str) -> float | None:
    """`parts_of_machine` of a single run."""
    return figure(parts_of_machine(Columns((run,)), kind))


def busy_parts(columns: Columns, side: str) -> Column:
    """Used share of the CPU time available to a side: by the trace, else by the counters around the phase.

    Excludes the client's polling for the next arrival, as it could have handled a request in that time.
    """
    return columns.once(("busy", side), lambda: _busy_parts(columns, side))


def _busy_parts(columns: Columns, side: str) -> Column:
    traced = _saturation(columns, side, "busy")
    cpus, seconds = columns.number("usage", f"{side}_cpus"), usage_seconds(columns)
    used = np.where(known(traced), traced, ratio(_used(columns, side), cpus * seconds))
    turns_s, arms = columns.number("usage", "turns_s"), columns.number("rotation", "arms")
    used = np.where(known(arms) & ~known(turns_s), used * arms, used)  # an older record, over the whole phase
    if side == "sut":
        return used
    polled = columns.number("measurement", "details", "client_polled_s")
    cpus = np.where(known(traced), _saturation(columns, side, "cpus"), cpus)
    over_s = np.where(known(turns_s), turns_s, columns.number("measurement", "duration_s"))
    took = used - ratio(polled, cpus * over_s)
    return np.where(known(took) & (polled != 0), np.where(took > 0, took, 0.0), used)


def limits_reached(columns: Columns, side: str) -> Column:
    """Whether a side exhausted its CPU time, as `client_bottleneck` defines it: 1, 0, or unknown."""
    return reached([
        (busy_parts(columns, side), BUSY),
        (_saturation(columns, side, "waiting"), WAITING),
        (_saturation(columns, side, "throttled"), THROTTLED),
    ])  # fmt: skip


def parts_of_machine(columns: Columns, kind: str) -> Column:
    """Share of machine time by kind: `idle` (with `iowait`), `iowait`, `steal`, or `others` (not of the run)."""
    return columns.once(("part of machine", kind), lambda: _parts_of_machine(columns, kind))


def _parts_of_machine(columns: Columns, kind: str) -> Column:
    total = columns.once(("machine_s",), lambda: _machine_s(columns))
    idle, waiting, stolen = (columns.number("usage", "machine", mode) for mode in ("idle", "iowait", "steal"))
    if kind in ("steal", "iowait"):
        return ratio(stolen if kind == "steal" else waiting, total)
    idle, waiting = or_zero(idle), or_zero(waiting)
    if kind == "idle":
        return ratio(idle + waiting, total)
    carried = columns.where(is_carried)
    mine = (
        _used(columns, "sut")
        + np.where(columns.where(_is_client_here), _used(columns, "client"), 0.0)
        + np.where(carried, columns.number("usage", "proxy_cpu_s"), 0.0)
        + or_zero(columns.number("usage", "storage_cpu_s"))
    )
    return ratio(total - (idle + waiting + or_zero(stolen)) - mine, total)


def is_alone(run: RunRecord) -> bool:
    """Whether a program is itself the SUT, without a client; a client with unknown time is something else."""
    return run.settings.get("client", "") is None


def _is_client_here(run: RunRecord) -> bool:
    """Whether the client's time is part of this machine's: not on another machine, but on a shared kernel."""
    apart = run.between is not None and not run.between.one_boot
    return not apart and not is_alone(run)


def _machine_s(columns: Columns) -> Column:
    """Time of all CPUs of a machine in all modes; unknown if the kernel does not report steal."""
    machines = columns.trees("usage", "machine")
    return np.array(
        [sum(each.values()) if each and "steal" in each else math.nan for each in machines], dtype=float
    )


def _used(columns: Columns, side: str) -> Column:
    return sut_cpu_column(columns) if side == "sut" else columns.number("usage", f"{side}_cpu_s")


def _saturation(columns: Columns, side: str, key: str) -> Column:
    return columns.number("usage", "saturation", side, key)


def _limit_of(columns: Columns, rows: Rows, side: str) -> str:
    """Text on what a side did, by the largest values over the runs."""
    used = known_values(busy_parts(columns, side)[rows])
    reasons = [f"used {share(max(used))} of the CPU time that it could use"] if used else []
    for key, limit, words in (("waiting", WAITING, "waited for a CPU"), ("throttled", THROTTLED, "was throttled")):
        most = max(known_values(_saturation(columns, side, key)[rows]), default=0.0)
        if most >= limit:
            reasons.append(f"{words} {share(most)} of the time")
    return " and ".join(reasons) or "did an unknown amount of work"
