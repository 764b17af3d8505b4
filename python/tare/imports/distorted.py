"""Distortions that a run shows by itself, whatever its tool."""

from __future__ import annotations

from collections.abc import Mapping

from tare.imports.reading import ReadRun

_OTHER_DURATION = 0.05
"""Relative difference from the duration that was asked for; the end of a run takes less."""


def distorted(read: ReadRun, parts: Mapping[str, str]) -> tuple[str, ...]:
    """Distortions of a run, with those that its parser found. `parts`: what the files' names say of it."""
    measured = read.measurement
    if measured is None:
        return read.distortions
    found = list(read.distortions)
    latency, took = measured.latency, measured.duration_s
    sensitive = (latency.max_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms)
    rate = _number(read.says.get("rate"))
    if rate and latency.blind_to_stalls is True and any(each is not None for each in sensitive):
        found.append("coordinated-omission")
    asked = _number(read.says.get("duration", parts.get("duration")))
    if asked and took is not None and abs(took - asked) > _OTHER_DURATION * asked:
        found.append("other-duration")
    return tuple(found)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None
