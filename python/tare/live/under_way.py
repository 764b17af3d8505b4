"""What can be seen of the runs under way: figures, resources and output, each read on from the look before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tare.analyze.timelines.series import Point as TracePoint
from tare.live import traces, windows
from tare.live.now import Current, Now
from tare.live.output import Source, Tail, in_container, of_engine, raw_of, tails, text_of, written
from tare.live.windows import GENERATORS, Point
from tare.run.record import Phase

_PROGRAMS = {Phase.WARM_UP: ("warm-up", "warm-up"), Phase.MEASURE: ("measure", "client")}
"""Phase → name of the client's output, and of its control group in the trace. Later phases show the measured."""
_LATER = {Phase.COOL_DOWN, Phase.COLLECT, Phase.TEARDOWN}


@dataclass(frozen=True)
class Seen:
    """Of one run. `phase`: of which the windows are; `unit` and `latency`: what they count, and which they tell."""

    run_id: str
    arm: str
    phase: str | None
    unit: str | None
    latency: str | None
    windows: Sequence[Point]
    trace: Sequence[TracePoint]
    tails: tuple[Tail, ...]


@dataclass
class Looker:
    """Keeps its place in every file of the runs under way, and forgets those of runs that are over."""

    engine_root: str = "/var/lib/docker"
    figures: dict[tuple[str, str], windows.Follower] = field(default_factory=dict)
    resources: dict[str, traces.Follower] = field(default_factory=dict)

    def look(self, now: Now) -> Iterator[Seen]:
        """All runs under way."""
        tokens = {run.token for run in now.runs}
        self.figures = {key: one for key, one in self.figures.items() if key[0] in tokens}
        self.resources = {key: one for key, one in self.resources.items() if key in tokens}
        for run in now.runs:
            raw = raw_of(now, run)
            if raw is not None:
                yield self._seen(run, raw)

    def _seen(self, run: Current, raw: Path) -> Seen:
        resources = self.resources.setdefault(run.token, traces.Follower(raw))
        trace = resources.look()
        phase = Phase.MEASURE if run.phase in _LATER else run.phase
        generator = GENERATORS.get(run.workload) if phase in _PROGRAMS else None
        cgroups = resources.journal.cgroups
        return Seen(
            run_id=run.run_id,
            arm=run.arm,
            phase=None if generator is None or phase is None else phase.value,
            unit=None if generator is None else generator.unit,
            latency=None if generator is None else generator.latency,
            windows=() if phase is None else self._windows(run, phase, raw, cgroups),
            trace=trace,
            tails=tuple(tails(written(raw, self._containers(cgroups)))),
        )

    def _windows(self, run: Current, phase: Phase, raw: Path, cgroups: Mapping[str, str]) -> Sequence[Point]:
        generator = GENERATORS.get(run.workload)
        if generator is None or phase not in _PROGRAMS:
            return ()
        key = (run.token, phase.value)
        if key not in self.figures:
            source = self._source(raw, *_PROGRAMS[phase], generator.stream, cgroups)
            if source is None:
                return ()
            self.figures[key] = windows.Follower(source.path, generator.read, source.decode)
        return self.figures[key].look()

    def _source(
        self, raw: Path, output: str, client: str, stream: str, cgroups: Mapping[str, str]
    ) -> Source | None:
        """A client that runs bare writes its file itself, a container's lies with its engine until it has ended."""
        kept = in_container(cgroups.get(client), self.engine_root)
        if kept is not None and kept.exists():
            return Source(output, kept, partial(of_engine, stream))
        own = raw / f"{output}.{stream}"
        return Source(output, own, text_of) if own.exists() else None

    def _containers(self, cgroups: Mapping[str, str]) -> Mapping[str, Path]:
        found = {name: in_container(path, self.engine_root) for name, path in cgroups.items()}
        return {f"{name} (in its container)": path for name, path in found.items() if path is not None}
