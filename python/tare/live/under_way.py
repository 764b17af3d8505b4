"""What is visible of current runs: figures, resources and output, each read from where the last look ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tare.analyze.timelines.series import Point as TracePoint
from tare.live import traces, windows
from tare.live.now import Current, Now
from tare.live.output import Source, Tail, container_log, decode_engine_log, decode_text, outputs_of, raw_of, tails
from tare.live.windows import GENERATORS, Point
from tare.record.run_record import Phase

_PROGRAMS = {Phase.WARM_UP: ("warm-up", "warm-up"), Phase.MEASURE: ("measure", "client")}
"""Phase → name of the client's output and of its control group in the trace. Later phases show the measured
values."""
_LATER = {Phase.COOL_DOWN, Phase.COLLECT, Phase.TEARDOWN}


@dataclass(frozen=True)
class Seen:
    """One run. `phase`: phase of the windows.

    `unit`, `latency`: what the windows count, and which latency they have. Windows and trace are in seconds since
    the first trace of any current run began, which is `zero_s` on CLOCK_MONOTONIC; without a trace (`None`),
    windows are in seconds since the run began.
    """

    run_id: str
    arm: str
    phase: str | None
    unit: str | None
    latency: str | None
    windows: Sequence[Point]
    trace: Sequence[TracePoint]
    tails: tuple[Tail, ...]
    zero_s: float | None = None


@dataclass
class RunFollower:
    """Keeps its position in every file of current runs, and forgets finished runs."""

    engine_root: str = "/var/lib/docker"
    figures: dict[tuple[str, str], windows.Follower] = field(default_factory=dict)
    resources: dict[str, traces.Follower] = field(default_factory=dict)

    def look(self, now: Now) -> Iterator[Seen]:
        """Yield what is visible of each current run."""
        tokens = {run.token for run in now.runs}
        self.figures = {key: one for key, one in self.figures.items() if key[0] in tokens}
        self.resources = {key: one for key, one in self.resources.items() if key in tokens}
        under_way = [(run, raw) for run in now.runs if (raw := raw_of(now, run)) is not None]
        for run, raw in under_way:
            self.resources.setdefault(run.token, traces.Follower(raw)).look()
        begin = _begin_of(self.resources.values())
        for run, raw in under_way:
            yield self._seen(run, raw, begin)

    def _seen(self, run: Current, raw: Path, begin: _Begin | None) -> Seen:
        resources = self.resources[run.token]
        later_s = 0.0 if begin is None or resources.zero_s is None else resources.zero_s - begin.monotonic_s
        phase = Phase.MEASURE if run.phase in _LATER else run.phase
        generator = GENERATORS.get(run.workload) if phase in _PROGRAMS else None
        cgroups = resources.journal.cgroups
        figures = None if phase is None else self._figures(run, phase, raw, cgroups)
        return Seen(
            run_id=run.run_id,
            arm=run.arm,
            phase=None if generator is None or phase is None else phase.value,
            unit=None if generator is None else generator.unit,
            latency=None if generator is None else generator.latency,
            windows=() if figures is None else _placed(figures, run.began_at if begin is None else begin.at),
            trace=[replace(point, second=round(point.second + later_s, 2)) for point in resources.lines],
            tails=tuple(tails(outputs_of(raw, self._containers(cgroups)))),
            zero_s=None if begin is None else begin.monotonic_s,
        )

    def _figures(
        self, run: Current, phase: Phase, raw: Path, cgroups: Mapping[str, str]
    ) -> windows.Follower | None:
        generator = GENERATORS.get(run.workload)
        if generator is None or phase not in _PROGRAMS:
            return None
        key = (run.token, phase.value)
        if key not in self.figures:
            source = self._source(raw, *_PROGRAMS[phase], generator.stream, cgroups)
            if source is None:
                return None
            self.figures[key] = windows.Follower(source.path, generator.read, source.decode)
        return self.figures[key]

    def _source(
        self, raw: Path, output: str, client: str, stream: str, cgroups: Mapping[str, str]
    ) -> Source | None:
        """Output of the client: a bare client writes its file itself.

        A container's stays with the engine until it ends.
        """
        kept = container_log(cgroups.get(client), self.engine_root)
        if kept is not None and kept.exists():
            return Source(output, kept, partial(decode_engine_log, stream))
        own = raw / f"{output}.{stream}"
        return Source(output, own, decode_text) if own.exists() else None

    def _containers(self, cgroups: Mapping[str, str]) -> Mapping[str, Path]:
        containers = {name: container_log(path, self.engine_root) for name, path in cgroups.items()}
        return {f"{name} (in its container)": path for name, path in containers.items() if path is not None}


@dataclass(frozen=True)
class _Begin:
    """Second 0 by both clocks. `at`: seconds since the epoch."""

    at: float
    monotonic_s: float


def _begin_of(resources: Iterable[traces.Follower]) -> _Begin | None:
    """Start of the first trace, so that simultaneous events of a duet are drawn at one place."""
    known = [
        _Begin(one.zero_s + one.ahead_s, one.zero_s)
        for one in resources
        if one.zero_s is not None and one.ahead_s is not None
    ]
    return min(known, key=lambda one: one.monotonic_s, default=None)


def _placed(figures: windows.Follower, zero_at: float) -> Sequence[Point]:
    points = figures.look()
    return windows.placed(points, 0.0 if figures.began_at is None else figures.began_at - zero_at)
