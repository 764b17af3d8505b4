"""Whether the plug-ins keep their contracts, by tare's own suite."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tare_counter.database import COUNTER
from tare_counter.workload import COUNT

from tare.testing import DatabaseConformance, OutputConformance


class TestCounter(DatabaseConformance):
    database = COUNTER
    settings: ClassVar[dict[str, int]] = {"start": 5}


class TestCount(OutputConformance):
    workload = COUNT
    drives = "counter"
    parameters: ClassVar[dict[str, float]] = {"measure_s": 0.01, "window_s": 0.005}
    output = Path(__file__).with_name("count.stdout").read_text()
    """What the client printed against a counter on the same machine."""
