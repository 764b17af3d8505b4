"""Two generators on the same arms: what each says of a path, and what they differ by in the same blocks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.analyze.analysis import Analysis
from tare.analyze.estimate import Estimate, Finding
from tare.analyze.estimator import paired
from tare.study.model import Study

GENERATOR, PATH = "generator", "path"
METRICS = ("throughput", "cpu_per_operation")
AGREED = 0.05
"""Generators whose overheads differ by no more, by the whole interval, say the same for what these studies ask."""
_RULE = "client-bottleneck"


@dataclass(frozen=True)
class Agreement:
    """One path in one metric. `findings`: generator → overhead; `apart`: that of the second against the first.

    `bound`: generators whose client set the rate, of the path or of the baseline that it is compared with.
    """

    path: str
    metric: str
    findings: Mapping[str, Finding]
    apart: Estimate
    bound: frozenset[str]

    @property
    def verdict(self) -> str:
        """What the interval of the difference allows to be said."""
        if self.apart.low is None or self.apart.high is None:
            return f"no interval: {self.apart.why}"
        whose = f", {' and '.join(sorted(self.bound))} at its client's end" if self.bound else ""
        if self.apart.low >= -AGREED and self.apart.high <= AGREED:
            return f"agree within {AGREED:.0%}{whose}"
        if self.apart.low > 0 or self.apart.high < 0:
            return f"differ{whose}"
        return f"open: the interval is wider than {AGREED:.0%}{whose}"


def agreement(study: Study, analysis: Analysis) -> tuple[Agreement, ...]:
    """Every path that both generators were sent over, in the study's order, in each of `METRICS` that is known."""
    generators = study.factors[GENERATOR]
    bound = {alarm.arm for alarm in analysis.alarms if alarm.rule == _RULE}
    known = {metric.name for metric in analysis.metrics}
    agreements = []
    for metric in (name for name in METRICS if name in known):
        for path in study.factors[PATH]:
            of = {each.levels[GENERATOR]: each for each in _of_path(analysis, path, metric)}
            if set(of) != set(generators):
                continue
            at_end = {name for name, each in of.items() if {each.arm, each.baseline} & bound}
            agreements.append(
                Agreement(path, metric, of, _apart(study, *(of[name] for name in generators)), frozenset(at_end))
            )
    return tuple(agreements)


def _of_path(analysis: Analysis, path: str, metric: str) -> Iterator[Finding]:
    for each in analysis.findings:
        if not each.control and not each.stratum and each.metric == metric and each.levels.get(PATH) == path:
            yield each


def _apart(study: Study, one: Finding, other: Finding) -> Estimate:
    """From the blocks that both have: (1 + effect of the second) / (1 + effect of the first)."""
    first = dict(one.blocks)
    ratios = [(1 + effect) / (1 + first[block]) for block, effect in other.blocks if block in first]
    return paired(study, ratios)


def table(study: Study, analysis: Analysis, agreements: Sequence[Agreement]) -> list[str]:
    """Markdown: the paths, then how busy SUT and client were in each arm."""
    first, second = study.factors[GENERATOR]
    head = f"| metric | path | {first} | {second} | {second} against {first} | |"
    lines = [
        f"**{study.name}**, scale {study.scale}, {len(analysis.blocks)} blocks",
        "",
        head,
        "|---|---|---|---|---|---|",
    ]
    for each in agreements:
        cells = (_cell(each.findings[name].estimate) for name in (first, second))
        lines.append(
            f"| {each.metric} | {each.path} | {' | '.join(cells)} | {_cell(each.apart)} | {each.verdict} |"
        )
    if analysis.control is not None:
        control = next(one.estimate for one in analysis.findings if one.control and one.metric == "throughput")
        lines.append(f"| throughput | bare again (control) | {_cell(control)} | | | |")
    return [*lines, "", *_sides(analysis), "", *_rules(analysis)]


def _sides(analysis: Analysis) -> Iterator[str]:
    """What part of the CPU time that each side may use it used, medians over an arm's runs."""
    bound = {alarm.arm for alarm in analysis.alarms if alarm.rule == _RULE}
    yield f"| arm | throughput, 1/s | SUT busy | client busy | `{_RULE}` |"
    yield "|---|---|---|---|---|"
    for arm in analysis.arms:
        level = arm.values["throughput"].mean if "throughput" in arm.values else None
        rate = "unknown" if level is None else f"{level:,.0f}"
        busy = [_share(arm.limits.sut_busy), _share(arm.limits.client_busy)]
        unknown = level is None or arm.limits.client_busy is None
        rule = "broken" if arm.arm in bound else "unknown" if unknown else "holds"
        yield f"| {arm.arm} | {rate} | {' | '.join(busy)} | {rule} |"


def _share(part: float | None) -> str:
    return "unknown" if part is None else f"{part:.0%}"


def _rules(analysis: Analysis) -> list[str]:
    broken: dict[str, list[str]] = {}
    for alarm in analysis.alarms:
        broken.setdefault(alarm.rule, []).append(alarm.arm or "the study")
    if not broken:
        return ["No rule is broken."]
    return ["Rules broken: " + "; ".join(f"`{rule}` ({', '.join(arms)})" for rule, arms in broken.items()) + "."]


def _cell(estimate: Estimate) -> str:
    if estimate.point is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.point:+.1%}, no interval"
    return f"{estimate.point:+.1%} ({estimate.low:+.1%} to {estimate.high:+.1%}), n={estimate.n}"
