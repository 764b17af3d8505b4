"""Load generators that can take turns, and the schedule that they get."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tare.workloads import ClientCommand, Parameters, Target, fake
from tare.workloads.tare_load import in_turns


class TurnTaker(Protocol):
    """A load generator that connects, makes `CONNECTED_FILE`, waits for `TURNS_FILE`, and then takes its turns."""

    def refusal(self, parameters: Parameters) -> str | None:
        """Why these parameters do not suit turns; `None` if they do."""
        ...

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Describe the command, which also warms up in turns."""
        ...


TURN_TAKERS: Mapping[str, TurnTaker] = {"tare-load": in_turns.TareLoadInTurns(), "fake": fake.FakeInTurns()}
"""Workload → how it takes turns; a workload that is missing here cannot."""


@dataclass(frozen=True)
class TurnSpan:
    """Times of CLOCK_MONOTONIC in nanoseconds: start, begin of the measured time, end."""

    start_ns: int
    settled_ns: int
    end_ns: int


def turns_file(turns: Sequence[TurnSpan], warm_up: int, until_ns: int, slices: int = 0) -> bytes:
    """Render a schedule. `warm_up`: number of turns that only warm up; `until_ns`: when the client ends.

    `slices`: parts of each turn in which operations are counted, too.
    """
    spans = [(turn.start_ns, turn.settled_ns, turn.end_ns) for turn in turns]
    tree = {"format": 1, "warm_up": warm_up, "turns": spans, "until": until_ns, "slices": slices}
    return json.dumps(tree).encode()
