"""What happens to a host while a run on it is in a phase."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tare.record.run_record import Phase
from tare.run.events import Event, PhaseStarted


def once(phase: Phase, do: Callable[[], None], after_s: float = 1.0) -> Callable[[Event], None]:
    """An observer that has it done so long after the first such phase has begun, while the run goes on."""
    begun: list[threading.Timer] = []

    def observe(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is phase and not begun:
            begun.append(threading.Timer(after_s, do))
            begun[0].start()

    return observe
