"""Quantities as a publication defines them, from every source that has them, with tare's own estimate.

casalicchio-2017: the overhead is |docker - native| / native of a tool's figure, over N repetitions with mean and
mean square error. Here each tool has a view computed from the run's trace, and what it reported if it ran; all
figures are about the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import polars as pl

from tare.analyze.derived import sut_cpus_used
from tare.analyze.estimate import Estimate
from tare.analyze.estimator import paired
from tare.analyze.hosts import OtherHost
from tare.analyze.published import mean_square_error, overhead_fraction
from tare.analyze.runs import select_runs
from tare.analyze.views import VIEWS
from tare.analyze.views.compute import samples
from tare.analyze.views.formulas import lowest
from tare.analyze.views.laid import laid
from tare.analyze.views.model import Kind, View
from tare.record.emulated import EmulatedArms, emulated_arms
from tare.record.run_record import RunRecord
from tare.store.trace import Trace
from tare.study.model import Study
from tare.study.values import Quantities, QuantityName

_KIB, _MIB = 1024.0, float(1 << 20)
_NS = 1e9

_OF_NODE = r"^(.*) of (sut-\d+)$"
"""Subjects of a further node's host (docs/reference/monitors.md)."""
_SUT = "sut"
"""Prefix of subjects of the server, a node or their processes: `sut`, `sut-2`, `sut-2 pid 7`."""
_CLIENT_HOST, _OTHER_HOSTS = " of client$", r" of (client|sut-\d+)$"
"""Subjects of hosts that are left out of sums."""
OWN = "tare-probe"
"""Tool whose view is its own record."""


@dataclass(frozen=True, eq=False)
class WatchedTrace:
    """Recordings of a run: its trace, and the samples of tools that watched it, without samples to be dropped.

    `observed` has the columns of `views.compute.SCHEMA`. `None`: not recorded. `further`: hosts of further nodes,
    with their traces. `one_kernel`: the hosts of the run were one machine.
    """

    trace: Trace | None = None
    observed: pl.DataFrame | None = None
    further: tuple[tuple[OtherHost, Trace], ...] = ()
    one_kernel: bool = False

    def of_sut(self, seen: pl.DataFrame) -> pl.DataFrame:
        """Samples of the SUT's hosts; hosts that are one machine count once."""
        others = _OTHER_HOSTS if self.one_kernel else _CLIENT_HOST
        return seen.filter(~pl.col("subject").str.contains(others))


ReadTrace = Callable[[RunRecord], WatchedTrace]
"""Function that reads the recordings of a run."""


@dataclass(frozen=True)
class FigureSource:
    """One source of a quantity. `reported`: reads the figure from the record; otherwise it is a view of the trace.

    A view adds up the `quantities` of `tool` for subjects that begin with `subject`; `factor` converts the sum to
    `unit`. `chosen`: selects among these subjects; `None`: all.
    """

    name: str
    unit: str
    reported: Callable[[RunRecord], float | None] | None = None
    tool: str = ""
    quantities: tuple[str, ...] = ()
    subject: str = ""
    factor: float = 1.0
    chosen: Callable[[Collection[str]], Collection[str]] | None = None
    of_host: bool = False


def _execution_time_us(run: RunRecord) -> float | None:
    """Time for one operation in microseconds; a fixed number of operations takes that many times as long."""
    rate = run.measurement and run.measurement.throughput_per_s
    return 1e6 / rate if rate else None


def _cpu_percent(run: RunRecord) -> float | None:
    used = sut_cpus_used(run)
    return None if used is None else 100 * used


def _detail(name: str) -> Callable[[RunRecord], float | None]:
    return lambda run: run.measurement and run.measurement.details.get(name)


def _disk(record: str, block: str, kib: str) -> tuple[FigureSource, ...]:
    fs = "fs_reads_bytes" if record.startswith("read") else "fs_writes_bytes"
    bytes_name = f"block_{block}_bytes"
    return (
        FigureSource("sysbench", "MiB/s", reported=_detail(record)),
        FigureSource(
            "tare-probe", "MiB/s", tool="tare-probe", quantities=(bytes_name,), subject="sut", factor=1 / _MIB
        ),
        FigureSource("pidstat", "MiB/s", tool="pidstat", quantities=(kib,), subject=_SUT, factor=1 / _KIB),
        FigureSource("iostat", "MiB/s", tool="iostat", quantities=(kib,), factor=1 / _KIB, chosen=lowest),
        FigureSource(
            "docker stats", "MiB/s", tool="docker-stats", quantities=(bytes_name,), subject="sut", factor=1 / _MIB
        ),
        FigureSource("cAdvisor", "MiB/s", tool="cadvisor", quantities=(fs,), subject="sut", factor=1 / _MIB),
    )


_BUSY = ("usr", "nice", "sys", "irq", "soft", "guest", "gnice")
FIGURE_SOURCES: Mapping[QuantityName, tuple[FigureSource, ...]] = {
    "e_ovh": (FigureSource("sysbench", "µs", reported=_execution_time_us),),
    "cpu_ovh": (
        FigureSource("control group", "% of a CPU", reported=_cpu_percent),
        FigureSource("tare-probe", "% of a CPU", tool="tare-probe", quantities=("cpu_percent",), subject="sut"),
        FigureSource("pidstat", "% of a CPU", tool="pidstat", quantities=("cpu_percent",), subject=_SUT),
        FigureSource("docker stats", "% of a CPU", tool="docker-stats", quantities=("cpu_percent",), subject="sut"),
        FigureSource(
            "cAdvisor", "% of a CPU", tool="cadvisor", quantities=("cpu_cores",), subject="sut", factor=100.0
        ),
        FigureSource("mpstat", "% of the host", tool="mpstat", quantities=_BUSY, subject="all", of_host=True),
        FigureSource(
            "sar", "% of the host", tool="sar", quantities=("user", "nice", "system"), subject="all", of_host=True
        ),
    ),
    "io_ovh_r": _disk("read_mib_per_s", "read", "read_kib"),
    "io_ovh_w": _disk("written_mib_per_s", "written", "written_kib"),
}
"""Sources of each quantity, in the order of reports. Busy time of mpstat and sar is without idle, iowait, steal."""


@dataclass(frozen=True)
class Spread:
    """Values over an arm's good runs, in blocks in which both the arm and its baseline have a value.

    `n`: number of values. `mse`: mean square error, in the square of the unit.
    """

    n: int
    mean: float
    mse: float


@dataclass(frozen=True)
class QuantityRow:
    """A quantity of an arm and of its baseline by one source, as the study's source defines it."""

    quantity: QuantityName
    source: str
    unit: str
    arm: str
    baseline: str
    control: bool
    value: Spread
    reference: Spread
    overhead: float | None
    """|arm - baseline| / baseline of the means, a fraction; `None` for a baseline of zero."""
    signed: Estimate
    """tare's own estimate, paired by block, with its sign."""
    emulated: bool
    """Whether the arm or its baseline ran on an emulated CPU."""


def quantities(study: Study, records: Sequence[RunRecord], watched: ReadTrace) -> tuple[QuantityRow, ...]:
    """Compute the quantities that the study requests, by every source that has both arm and baseline."""
    wanted = study.quantities
    if wanted is None:
        return ()
    runs = select_runs(study, records)
    values = {place: _values(run, wanted, watched(run)) for place, run in runs.good.items()}
    return tuple(_compare(study, wanted, values, emulated_arms(runs.good.values())))


Values = Mapping[tuple[QuantityName, str], float]
"""(quantity, source) → value of one run."""


def _compare(
    study: Study, wanted: Quantities, values: Mapping[tuple[int, str], Values], emulated: EmulatedArms
) -> Iterator[QuantityRow]:
    for name in wanted.wanted:
        for source, unit in _sources(name):
            by_arm: dict[str, dict[int, float]] = {}
            for (block, of), each in values.items():
                if (name, source) in each:
                    by_arm.setdefault(of, {})[block] = each[name, source]
            for arm in study.arms:
                baseline = study.baseline_of(arm.name)
                mine, theirs = by_arm.get(arm.name, {}), by_arm.get(baseline, {})
                both = sorted(mine.keys() & theirs.keys())
                if arm.name == baseline or not both:
                    continue
                value, reference = (_spread([side[block] for block in both]) for side in (mine, theirs))
                positive = [block for block in both if mine[block] > 0 < theirs[block]]
                yield QuantityRow(
                    quantity=name,
                    source=source,
                    unit=unit,
                    arm=arm.name,
                    baseline=baseline,
                    control=arm.control,
                    value=value,
                    reference=reference,
                    overhead=overhead_fraction(value.mean, reference.mean),
                    signed=paired(study, [mine[block] / theirs[block] for block in positive], positive),
                    emulated=arm.name in emulated or baseline in emulated,
                )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(len(values), fmean(values), mean_square_error(values) or 0.0)


def _sources(name: QuantityName) -> Iterator[tuple[str, str]]:
    """Yield (source, unit); for a tool, first its own report, then its view."""
    for source in FIGURE_SOURCES[name]:
        yield source.name, source.unit
        if source.reported is None and source.tool != OWN:
            yield _view_of(source), source.unit


def _view_of(source: FigureSource) -> str:
    return source.name if source.tool == OWN else f"{source.name}, view"


def _values(run: RunRecord, wanted: Quantities, seen: WatchedTrace) -> Values:
    taken = _samples(run, wanted, seen)
    observed = None if seen.observed is None else seen.of_sut(seen.observed)
    nodes = tuple(name for name, node in (run.nodes or {}).items() if node.on)[1:]
    values: dict[tuple[QuantityName, str], float | None] = {}
    for name in wanted.wanted:
        for source in FIGURE_SOURCES[name]:
            if source.reported is not None:
                values[name, source.name] = source.reported(run)
                continue
            # If all hosts share one kernel, the first host shows all of it.
            needed = () if seen.one_kernel and not source.subject.startswith(_SUT) else nodes
            if observed is not None:
                values[name, source.name] = _view_value(observed, source, needed)
            if taken is not None:
                values[name, _view_of(source)] = _view_value(taken, source, needed)
    return {place: value for place, value in values.items() if value is not None}


def _samples(run: RunRecord, wanted: Quantities, seen: WatchedTrace) -> pl.DataFrame | None:
    """Samples that each tool would have printed within the measure phase, without those trimmed at its ends."""
    phase = run.usage and run.usage.phase
    if seen.trace is None or phase is None:
        return None
    views = _views(wanted)
    there = [laid(host, samples(trace, wanted.every_s, views)) for host, trace in seen.further]
    taken = seen.of_sut(pl.concat([samples(seen.trace, wanted.every_s, views), *there]))
    cut = wanted.trim * wanted.every_s
    first, last = (phase.began_s + cut) * _NS, (phase.ended_s - cut) * _NS
    return taken.filter((pl.col("from_ns") >= first) & (pl.col("to_ns") <= last))


def _views(wanted: Quantities) -> Mapping[str, View]:
    """Views of the tools, reduced to the requested quantities, as each takes time."""
    asked = {
        (source.tool, each)
        for name in wanted.wanted
        for source in FIGURE_SOURCES[name]
        for each in source.quantities
    }
    chosen = {
        tool: replace(view, quantities=tuple(each for each in view.quantities if (tool, each.name) in asked))
        for tool, view in VIEWS.items()
    }
    return {tool: view for tool, view in chosen.items() if view.quantities}


def _view_value(taken: pl.DataFrame, source: FigureSource, nodes: Sequence[str]) -> float | None:
    """Value of a view: mean of rates over time, or growth of totals per second; `None` if the tool prints nothing.

    `nodes`: further nodes, all of which must have samples, as a part of the SUT is not its sum.
    """
    own = taken.filter((pl.col("tool") == source.tool) & pl.col("subject").str.starts_with(source.subject))
    if any(not own["subject"].str.contains(rf"\b{node}\b").any() for node in nodes):
        return None
    subject = pl.col("subject").str
    split = own.with_columns(
        host=subject.extract(_OF_NODE, 2).fill_null(""), subject=subject.replace(_OF_NODE, "${1}")
    )
    by_host = [_view_value_on_host(rows, source) for _, rows in split.group_by("host", maintain_order=True)]
    seen = [value for value in by_host if value is not None]
    if not seen or len(seen) < len(by_host):
        return None
    return fmean(seen) if source.of_host else sum(seen)


def _view_value_on_host(own: pl.DataFrame, source: FigureSource) -> float | None:
    """Value of a view on one of the SUT's hosts."""
    kinds = {each.name: each.kind for each in VIEWS[source.tool].quantities}
    if source.chosen is not None:
        own = own.filter(pl.col("subject").is_in(list(source.chosen(own["subject"].unique().to_list()))))
    seen = []
    for name in source.quantities:
        rows = own.filter(pl.col("quantity") == name).drop_nulls(("from_ns", "to_ns", "value"))
        parts = [_one(kinds[name], series) for _, series in rows.group_by("subject")]
        seen += [part for part in parts if part is not None]
    return source.factor * sum(seen) if seen else None


def _one(kind: Kind, rows: pl.DataFrame) -> float | None:
    ordered = rows.sort("to_ns")
    if kind is Kind.TOTAL:
        seconds = (ordered["to_ns"][-1] - ordered["to_ns"][0]) / _NS
        return None if seconds <= 0 else float(ordered["value"][-1] - ordered["value"][0]) / seconds
    weights = ordered["to_ns"] - ordered["from_ns"]
    total = float(weights.sum())
    return float((ordered["value"] * weights).sum()) / total if total else None
