"""What `make bench-probe` prints: its tables, and each goal with its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.probe.containers import CONTAINERS
from bench.probe.rates import cannot_see

CADVISOR = "cAdvisor, scraped"


@dataclass(frozen=True)
class Cost:
    """CPU of one tool a sample, its own and what it causes in the daemons; its largest resident memory.

    `daemons_ms`: 0 for a tool that asks no daemon, `None` where others' use of the daemons hides what it caused.
    """

    tool: str
    containers: int
    own_ms: float
    daemons_ms: float | None
    resident_mb: float

    @property
    def total_ms(self) -> float | None:
        """CPU a sample with the daemons' share."""
        return None if self.daemons_ms is None else self.own_ms + self.daemons_ms


@dataclass(frozen=True)
class Rapid:
    """A recording of one container at 1 kHz."""

    load: str
    seconds: float
    core_share: float
    floor_share: float | None
    ticks: int
    missed: int
    lateness_p50_us: float
    lateness_p99_us: float
    lateness_max_us: float
    resident_mb: float
    scheduler: str


def table(costs: Sequence[Cost], rapid: Sequence[Rapid], rates: Mapping[str, float | None]) -> str:
    """Both tables and the goals with their results, as Markdown."""
    lines = [
        "| tool | containers | CPU ms a sample | of that in daemons | resident MB | fastest, Hz | cannot see |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {cost.tool} | {cost.containers or '-'} | {shown_ms(cost.total_ms)} | {shown_ms(cost.daemons_ms)} "
        f"| {cost.resident_mb:.1f} | {shown_hz(rates.get(cost.tool))} | {cannot_see(cost.tool) or '-'} |"
        for cost in costs
    ]
    lines += [
        "",
        "| 1 kHz, one container, load | share of a core | floor | ticks | missed | late p50 µs | p99 | max | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {run.load}, {run.scheduler} | {100 * run.core_share:.1f} % | "
        f"{'-' if run.floor_share is None else f'{100 * run.floor_share:.1f} %'} | {run.ticks} | {run.missed} | "
        f"{run.lateness_p50_us:.0f} | {run.lateness_p99_us:.0f} | {run.lateness_max_us:.0f} "
        f"| {run.resident_mb:.1f} |"
        for run in rapid
    ]
    return "\n".join([*lines, "", *goals(costs, rapid)])


def shown_hz(rate: float | None) -> str:
    """A rate, or a dash where none was measured."""
    return "-" if rate is None else f"{rate:.3g}"


def shown_ms(value: float | None) -> str:
    """Milliseconds, or that they are not known."""
    return "not known" if value is None else f"{value:.2f}"


def goals(costs: Sequence[Cost], rapid: Sequence[Rapid]) -> list[str]:
    """Each goal with its figure and whether it was reached."""

    def mean(tool: str, count: int) -> float | None:
        totals = [cost.total_ms for cost in costs if (cost.tool, cost.containers) == (tool, count)]
        known = [total for total in totals if total is not None]
        return fmean(known) if known else None

    judged: list[tuple[str, str, bool | None]] = []

    def ratio(goal: str, above: float | None, below: float | None, reached: Callable[[float], bool]) -> None:
        known = above / below if above is not None and below else None
        figure = "what others made the engine do hides it" if known is None else f"{known:.2f} x"
        judged.append((goal, figure, None if known is None else reached(known)))

    for count in (1, CONTAINERS):
        probe = mean("tare-probe", count)
        ratio(f"within 1.5 x of the floor, {count} containers", probe, mean("floor", count), lambda it: it <= 1.5)
        stats = mean("docker stats", count)
        ratio(f"50 x cheaper than docker stats, {count} containers", stats, probe, lambda it: it >= 50)
    if any(cost.tool == CADVISOR for cost in costs):
        both = (mean(CADVISOR, CONTAINERS), mean("tare-probe", CONTAINERS))
        ratio(f"50 x cheaper than cAdvisor, {CONTAINERS} containers", *both, lambda it: it >= 50)
    memory = max(
        [cost.resident_mb for cost in costs if cost.tool == "tare-probe"] + [run.resident_mb for run in rapid]
    )
    judged.append(("under 8 MB resident", f"{memory:.1f} MB", memory < 8))
    quiet, loaded = rapid[0], rapid[-1]
    judged.append(("1 kHz below 6 % of a core", f"{100 * quiet.core_share:.1f} %", quiet.core_share < 0.06))
    late = loaded.lateness_p99_us
    judged.append(("99th percentile of lateness below 200 µs at load 10", f"{late:.0f} µs", late < 200))
    words = {True: "reached", False: "NOT reached", None: "not known"}
    return [f"- {words[reached]}: {goal}: {figure}" for goal, figure, reached in judged]
