"""The monitors of one attempt: which of them watch what, and from when to when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.deployments import Instance
from tare.monitors import SUT, Scene
from tare.run.bench import Bench
from tare.run.machine import Machine
from tare.run.monitoring import DIRECTORY, Watch
from tare.run.surroundings import around, side
from tare.workloads import Parameters

TRACER = "probe"
"""The monitor that every run has, from before its warm-up to the end of its cool-down."""
MOST_SAMPLES = 6000
_INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_SPARE_S, _SPARE = 3600.0, 4.0
"""A monitor whose tare was killed ends by itself when its run would long be over."""


@dataclass
class Monitors:
    """Started and stopped by the phases; `running` is empty before and after."""

    machine: Machine
    running: dict[str, Watch] = field(default_factory=dict)
    ended: list[Watch] = field(default_factory=list)

    def begin(self, bench: Bench, server: Instance | None, parameters: Parameters) -> None:
        """Begin the trace: engine and host, and the server where there is one. Returns once it is at work."""
        seconds = parameters.warmup_s + parameters.measure_s + parameters.cooldown_s
        scene = Scene(
            host=bench.room.host,
            directory=f"{bench.room.raw}/{DIRECTORY}/{TRACER}",
            interval_s=interval_of(seconds),
            most_s=_SPARE * seconds + _SPARE_S,
            watched=around(bench.room.host, server),
        )
        watch = Watch(TRACER, self.machine.monitors[TRACER], scene, self.machine.ledger, self.machine.clock)
        self.running[TRACER] = watch
        watch.start()

    def client_started(self, phase: str, client: Instance, *, alone: bool) -> None:
        """Have a client watched from now on, where it stands on the host that is watched.

        `alone`: there is no server; what is measured is this program, so that it bears the server's name.
        """
        if self.machine.site.client.name != self.machine.site.sut.name:
            return
        name = phase if phase != "measure" else SUT if alone else "client"
        later = side(self.machine.site.client, name, client)
        for watch in self.running.values():
            watch.hand(later)

    def must_live(self) -> None:
        """Raise `RunFailed` when one has ended before it was told to."""
        for watch in self.running.values():
            watch.must_live()

    def end(self) -> None:
        """Stop all that runs; safe to call again."""
        for name in reversed(tuple(self.running)):
            watch = self.running[name]
            watch.stop()
            self.ended.append(watch)
            del self.running[name]

    def read(self, raw: Path) -> Mapping[str, Any]:
        """What the record keeps: monitor → its interval, samples, cost and whatever it tells of itself."""
        return {watch.name: watch.read(raw) for watch in self.ended}


def lacking_monitors(machine: Machine) -> Mapping[str, str]:
    """Monitor that the runs need → why this site cannot have it."""
    why = machine.monitors[TRACER].lacks(machine.site.sut, {})
    return {} if why is None else {TRACER: why}


def interval_of(seconds: float) -> float:
    """Between two samples of a trace of so many seconds: ten a second, fewer where there would be too many."""
    return next((each for each in _INTERVALS_S if seconds / each <= MOST_SAMPLES), _INTERVALS_S[-1])
