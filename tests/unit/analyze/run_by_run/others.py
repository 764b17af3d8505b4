"""Pairs of an arm with its baseline, and the other rules that work over columns, one run after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from tests.unit.analyze.run_by_run.load import part_of_machine
from tests.unit.record.parts import as_tree

from tare.analyze.derived import sut_cpu_s
from tare.analyze.estimate import Dropped
from tare.analyze.metrics import Metric
from tare.analyze.numbers import number_at
from tare.analyze.runs import Runs
from tare.analyze.statistics.pairing import Pairs
from tare.analyze.validity.between import client_host_use
from tare.analyze.validity.completeness import FAILING, SHORT
from tare.analyze.validity.cpus import IDLE, MORE
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share
from tare.analyze.validity.load import BUSY, OTHERS
from tare.record.run_record import RunRecord


def pair(runs: Runs, arm: str, baseline: str, metric: Metric) -> Pairs:
    ratios: list[tuple[int, float]] = []
    dropped: list[Dropped] = []
    values = {place: metric.of(run) for place, run in runs.good.items()}
    for block in runs.blocks_of(arm):
        below, above = (_value(runs, values, (block, side), metric) for side in (baseline, arm))
        if isinstance(below, str) or isinstance(above, str):
            dropped.append(Dropped(block, " and ".join(why for why in (below, above) if isinstance(why, str))))
        elif otherwise := _otherwise_counted(runs, block, (baseline, arm), metric):
            dropped.append(Dropped(block, " and ".join(otherwise)))
        else:
            ratios.append((block, above / below))
    return Pairs(
        tuple(ratios), tuple(dropped), _resolution(runs, [block for block, _ in ratios], (arm, baseline), metric)
    )


def _value(
    runs: Runs, values: Mapping[tuple[int, str], float | None], place: tuple[int, str], metric: Metric
) -> float | str:
    value = values.get(place)
    if value is not None and value > 0:
        return value
    block, arm = place
    if place not in runs.good:
        return runs.missing(block, arm)
    if value is None:
        return f"{arm} has no {metric.title}"
    return f"{arm} has a {metric.title} of {value:g}"


def _otherwise_counted(runs: Runs, block: int, sides: tuple[str, str], metric: Metric) -> list[str]:
    if metric.source is None:
        return []
    sources = [metric.source(runs.good[block, side]) for side in sides]
    if len(set(sources)) == 1:
        return []
    return [
        f"{side} was counted by {source or 'nobody knows whom'}"
        for side, source in zip(sides, sources, strict=True)
    ]


def _resolution(runs: Runs, blocks: list[int], arms: tuple[str, str], metric: Metric) -> float | None:
    if not metric.bucketed:
        return None
    known = {place: number_at(run.measurement, metric.resolution) for place, run in runs.good.items()}
    resolutions = [known[block, arm] for block in blocks for arm in arms]
    return max((width for width in resolutions if width is not None), default=None)


def proxy_weight(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.arms:
        base = {run.block: run for run in evidence.good(evidence.study.baseline_of(arm))}
        proxied = [run for run in evidence.good(arm) if _proxied(run) and run.block in base]
        pairs = [(run, base[run.block]) for run in proxied if not _proxied(base[run.block])]
        taken = [(run, other) for run, other in pairs if _contended(run) and _took_more(run, other)]
        if pairs and 2 * len(taken) > len(pairs):
            rates = [[_cpu_rate(pair[side]) or 0.0 for pair in taken] for side in (0, 1)]
            busy = [part for run, _ in taken if (part := part_of_machine(run, "others")) is not None]
            yield Alarm(
                "proxy-weight",
                arm,
                f"server and docker-proxy together had {fmean(rates[0]):.2f} CPUs where the baseline had "
                f"{fmean(rates[1]):.2f}, on a machine without idle time, of which other programs took "
                f"{share(fmean(busy))}: the proxy adds its own CPU weight",
                ids([run for run, _ in taken]),
                "stop other work on the machine; until then compare CPU time per operation, because throughput "
                "flatters this arm",
            )


def _proxied(run: RunRecord) -> bool:
    return run.path is not None and run.path.hop == "docker-proxy"


def _contended(run: RunRecord) -> bool:
    idle, others = part_of_machine(run, "idle"), part_of_machine(run, "others")
    return idle is not None and others is not None and idle < IDLE and others > OTHERS


def _took_more(run: RunRecord, baseline: RunRecord) -> bool:
    one, other = _cpu_rate(run), _cpu_rate(baseline)
    return one is not None and other is not None and one > MORE * other


def _cpu_rate(run: RunRecord) -> float | None:
    sut, seconds = sut_cpu_s(run), number_at(as_tree(run.usage), ("monotonic_s",))
    proxy = number_at(as_tree(run.usage), ("proxy_cpu_s",)) if _proxied(run) else 0.0
    return None if sut is None or proxy is None or not seconds else (sut + proxy) / seconds


def client_host_bound(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.arms:
        good = evidence.good(arm)
        busy = {run.run_id: part for run in good if (part := client_host_use(run)) is not None}
        bound = [run for run in good if run.run_id in busy and busy[run.run_id] >= BUSY]
        if 2 * len(bound) > len(busy):
            most = max(busy[run.run_id] for run in bound)
            yield Alarm(
                "client-host-bound",
                arm,
                f"the client's host used {share(most)} of its CPU time and may have limited the rate",
                ids(bound),
                "use a larger host for the client or a cheaper generator, and check what else runs there",
            )


def errors(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.attempted:
        good = evidence.good(arm)
        wrong = [run for run in good if any(number_at(run.measurement, (key,)) for key in ("errors", "reconnects"))]
        if wrong:
            yield Alarm(
                "errors",
                arm,
                "the generator had errors or reconnects in runs that are counted",
                ids(wrong),
                "read their raw files; refused and repeated operations must not count",
            )
        failed = [failure for failure in evidence.runs.failures if failure.arm == arm]
        if len(failed) > max(1, FAILING * (len(failed) + len(good))):
            others = "and only the others are compared" if good else "so this arm has no result"
            yield Alarm(
                "errors",
                arm,
                f"{len(failed)} of {len(failed) + len(good)} attempts failed, {others}",
                tuple(dict.fromkeys(failure.run_id for failure in failed)),
                "find out why; if slow runs fail, the remaining ones are too fast",
            )


def under_delivery(evidence: Evidence) -> Iterator[Alarm]:
    for arm in evidence.arms:
        shares = [(run, number_at(run.measurement, ("details", "delivered_share"))) for run in evidence.good(arm)]
        short = [(run, part) for run, part in shares if part is not None and part < 1 - SHORT]
        if short:
            least = min(part for _, part in short)
            yield Alarm(
                "under-delivery",
                arm,
                f"the generator delivered {share(least)} of its target rate",
                ids([run for run, _ in short]),
                "use a lower target or more threads: otherwise arms are compared at different rates",
            )
