"""Timelines: resource use of SUT, client, engine and host over the phases of a run, from its trace."""

from __future__ import annotations

from tare.analyze.timelines.runs import Timeline, Timelines, timelines
from tare.analyze.timelines.series import Point, series

__all__ = ["Point", "Timeline", "Timelines", "series", "timelines"]
