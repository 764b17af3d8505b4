"""Joining of monitors' logs to the runs that they overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tare.imports.mapping import MonitorsSpec
from tare.imports.monitors.beside import Clocked, LogBeside, Offset, offset_of, words_of
from tare.imports.monitors.registry import MONITOR_LOGS
from tare.imports.monitors.usage import Kept, Sides, table_of, usage_of, within
from tare.plural import counted
from tare.record.monitor import MonitorFacts
from tare.record.run_record import RunRecord

_LEAST_SAMPLES = 2
_ALIKE, _LOCAL = 0.1, frozenset({"ycsb"})
"""Relative difference between a log and the one run that it is of; parsers whose times are of an unknown zone."""


@dataclass
class _Watched:
    """A run, and what was joined to it. `clock`: when it took place; `run_s`: how long."""

    record: RunRecord
    words: Counter[str]
    clock: Clocked | None
    run_s: float | None
    kept: dict[str, tuple[LogBeside, Kept, Offset | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Joined:
    """Records with what monitors say of them. `tables`: run → name of a raw file → content.

    `sentences`: what was joined, and why a log was not.
    """

    records: Mapping[str, RunRecord]
    tables: Mapping[str, Mapping[str, bytes]]
    sentences: tuple[str, ...]


def joined(records: Sequence[RunRecord], logs: Sequence[LogBeside], spec: MonitorsSpec) -> Joined:
    """Join each log to the good runs whose names have its words, and which its clock covers."""
    runs = [_watched(record) for record in records if record.outcome.ok]
    having: dict[str, set[int]] = {}
    for n, run in enumerate(runs):
        for word in run.words:
            having.setdefault(word, set()).add(n)
    alone: dict[tuple[str, str], list[str]] = {}
    offsets = Counter[tuple[str, str]]()
    for beside in logs:
        near = set(range(len(runs))).intersection(*(having.get(word, set()) for word in beside.words))
        candidates = [runs[n] for n in sorted(near) if beside.words <= runs[n].words]
        why = _join(beside, candidates, spec)
        if why is not None:
            alone.setdefault((beside.tool, why), []).append(beside.name)
    made, tables = dict[str, RunRecord](), dict[str, Mapping[str, bytes]]()
    for run in runs:
        if run.kept and run.run_s is not None:
            made[run.record.run_id] = _told(run, run.run_s, spec)
            tables[run.record.run_id] = {
                f"monitors/{tool}.parquet": table_of(kept) for tool, (_, kept, _) in run.kept.items()
            }
            offsets.update((tool, _offset_text(offset)) for tool, (_, _, offset) in run.kept.items())
    joins = [f"{tool} joined to {counted(count, 'run')}: {text}" for (tool, text), count in offsets.items()]
    return Joined(made, tables, (*joins, *(_unjoined(tool, why, names) for (tool, why), names in alone.items())))


def _unjoined(tool: str, why: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} ({tool}) is joined to no run: {why}"
    return f"{counted(len(names), 'log')} of {tool}, such as {names[0]}, are joined to no run: {why}"


def _watched(record: RunRecord) -> _Watched:
    measured, imported = record.measurement, record.imported
    began, took = (None, None) if measured is None else (measured.started_at, measured.duration_s)
    is_utc = imported is None or imported.parser not in _LOCAL
    clock = None if began is None or took is None else Clocked(began, began + took, is_utc)
    return _Watched(record, words_of(imported.file if imported else ""), clock, took)


def _join(beside: LogBeside, candidates: Sequence[_Watched], spec: MonitorsSpec) -> str | None:
    """Join a log; why it is of no run, if it is of none."""
    if not candidates:
        return "no run has the words of its name (" + ", ".join(sorted(beside.words)) + ")"
    clocked = [run for run in candidates if run.clock is not None]
    step = beside.step_s
    if step is None or not clocked:
        return _whole(beside, candidates, step or spec.interval_s)
    offset = offset_of(beside, [run.clock for run in clocked if run.clock is not None], spec.offset_s)
    if offset is None:
        return "its clock covers none of them, or does so in several time zones: give `offset_s`"
    times = 0
    for run in clocked:
        if run.clock is None or run.run_s is None:
            continue
        ends = [(sample.at_s or 0.0) + offset.seconds - run.clock.began_s for sample in beside.log.samples]
        kept = replace(within(beside.tool, beside.log.samples, ends, step, run.run_s), cpus=beside.log.cpus)
        if len(kept.samples) >= _LEAST_SAMPLES and beside.tool not in run.kept:
            run.kept[beside.tool] = (beside, kept, offset)
            times += 1
    return None if times else f"none of {counted(len(clocked), 'run')} lies in its time"


def _whole(beside: LogBeside, candidates: Sequence[_Watched], step: float | None) -> str | None:
    """Join a log to the one run that it can be of, where one of them has no clock, if both take as long."""
    if len(candidates) > 1:
        return f"log or runs have no clock, and {len(candidates)} runs have the words of its name"
    if step is None:
        return "it says no times: give `interval_s`"
    (run,) = candidates
    if run.run_s is None:
        return "it is unknown how long its run took"
    lasts = step * len(beside.log.samples)
    if abs(lasts - run.run_s) > max(3 * step, _ALIKE * run.run_s):
        return f"log or run has no clock, and they do not take as long: {lasts:g} s, and {run.run_s:g} s"
    ends = [step * n for n in range(1, len(beside.log.samples) + 1)]
    if beside.tool in run.kept:
        return f"its run has a log of {beside.tool} already"
    kept = within(beside.tool, beside.log.samples, ends, step, run.run_s)
    run.kept[beside.tool] = (beside, replace(kept, cpus=beside.log.cpus), None)
    return None


def _told(run: _Watched, run_s: float, spec: MonitorsSpec) -> RunRecord:
    """The record with usage and monitors."""
    kept = [run.kept[tool][1] for tool in MONITOR_LOGS if tool in run.kept]
    usage = usage_of(kept, Sides(spec.server, spec.client), run_s, spec.cpus)
    monitors = {
        tool: MonitorFacts(
            interval_s=each.step_s,
            samples=len(each.samples),
            file=beside.name,
            sha256=beside.sha256,
            offset_s=None if offset is None else offset.seconds,
            offset_from=_offset_text(offset),
        )
        for tool, (beside, each, offset) in run.kept.items()
    }
    assumed = [
        f"samples of {tool}: {_offset_text(offset)}"
        for tool, (_, _, offset) in run.kept.items()
        if offset is None or offset.assumed
    ]
    raw = (*run.record.raw, *(f"monitors/{tool}.parquet" for tool in run.kept))
    update = {"usage": usage, "monitors": monitors, "raw": raw, "notices": (*run.record.notices, *assumed)}
    return run.record.model_copy(update=update)


def _offset_text(offset: Offset | None) -> str:
    if offset is None:
        return "no clock; the log is as long as the run, and was taken as a whole"
    hours, minutes = divmod(round(abs(offset.seconds)) // 60, 60)
    sign = "-" if offset.seconds < 0 else "+"
    return f"its clock {sign}{hours:02d}:{minutes:02d} ({offset.why})"
