"""A client's CPU time is what its readings tell, and only where they span the measure phase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.run.usage.cpu import Meter
from tare.sites.process import TICKS_PER_S

CLIENT, SERVER = 7, 8


def instance(pid: int) -> Any:
    return SimpleNamespace(process=SimpleNamespace(pid=pid))


class Bench:
    """A host of two processes in the root control group, each of which uses half a CPU, and a clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.alive = {CLIENT, SERVER}

    def monotonic(self) -> float:
        return self.now_s

    wall = monotonic

    def read(self, path: str) -> bytes | None:
        pid = path.removeprefix("/proc/").removesuffix("/stat")
        if not pid.isdecimal() or int(pid) not in self.alive:
            return None
        ticks = int(self.now_s / 2 * TICKS_PER_S)
        return f"{pid} (program) R {' '.join(['0'] * 10)} {ticks} 0 {' '.join(['0'] * 30)}".encode()

    def used(self, *, looks_until_s: float) -> Any:
        """Of a phase of ten seconds with a look each second up to then, whose client ends before the last look."""
        meter = Meter(cast("Any", self), cast("Any", self), (instance(SERVER),), None)
        meter.begin(instance(CLIENT))
        for second in range(1, 10):
            self.now_s = float(second)
            if second <= looks_until_s:
                meter.look()
        self.now_s = 10.0
        self.alive.discard(CLIENT)
        return meter.end([None], None)


def test_a_client_whose_readings_span_the_phase_has_used_what_they_tell() -> None:
    used = Bench().used(looks_until_s=9)
    assert used.client_cpu_s == pytest.approx(4.5)
    assert used.sut_cpu_s == pytest.approx(5.0)


def test_of_a_client_that_was_read_at_the_beginning_alone_nothing_is_told() -> None:
    """A look over SSH may take as long as the phase, and a control group goes with its client."""
    assert Bench().used(looks_until_s=0).client_cpu_s is None
    assert Bench().used(looks_until_s=5).client_cpu_s is None
