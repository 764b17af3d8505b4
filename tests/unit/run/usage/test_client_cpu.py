"""A client's CPU time is what its readings tell, and only where they span the measure phase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.run.usage.cpu import Meter
from tare.sites.process import TICKS_PER_S

CLIENT, SERVER = 7, 8


def instance(pid: int) -> Any:
    return SimpleNamespace(process=SimpleNamespace(pid=pid), published=None)


class Bench:
    """A host of two processes in the root control group, each of which uses half a CPU, and a clock."""

    name = "bench"

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

    def used(self, *, looks_s: tuple[float, ...], ends_s: float) -> Any:
        """Of a client that is looked at then, and of a phase that is over some seconds after its end."""
        meter = Meter(cast("Any", self), cast("Any", self), (instance(SERVER),))
        meter.begin(instance(CLIENT))
        for look_s in looks_s:
            self.now_s = look_s
            if look_s > ends_s:
                self.alive.discard(CLIENT)
            meter.look()
        self.alive.discard(CLIENT)
        self.now_s = 15.0
        return meter.end([None], None)


def test_a_client_that_was_looked_at_as_long_as_it_lived_has_used_what_was_read() -> None:
    used = Bench().used(looks_s=(3, 6, 9.9), ends_s=10)
    assert used.client_cpu_s == pytest.approx(4.95)
    assert used.sut_cpu_s == pytest.approx(7.5)


def test_a_client_that_ended_just_before_a_look_has_used_what_was_read_before() -> None:
    assert Bench().used(looks_s=(3, 6, 9.9, 10.1), ends_s=10).client_cpu_s == pytest.approx(4.95)


@pytest.mark.parametrize("looks_s", [(10.1,), (3, 5, 10.1)])
def test_of_a_client_that_was_hardly_looked_at_nothing_is_told(looks_s: tuple[float, ...]) -> None:
    """A look over SSH may take as long as the phase, and a control group goes with its client."""
    assert Bench().used(looks_s=looks_s, ends_s=10).client_cpu_s is None
