"""What a monitor reports of itself."""

from __future__ import annotations

from typing import Any, final

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


@final
class MonitorFacts(BaseModel):
    """What a monitor reports about itself; a monitor may have further keys of its own."""

    model_config = ConfigDict(frozen=True, extra="allow")

    absent: str | None = None
    """Why it did not run, instead of all other keys: it is optional and not installed, or there was nothing to
    watch."""
    interval_s: float | None = None
    """Requested interval between samples."""
    samples: int | None = None
    """Number of samples."""
    cpu_s: float | None = None
    """CPU time that it used, including threads and children; `null` if one of its processes had disappeared. For
    the probe and the profile it covers their start to their end, for others the interval in the next two rows."""
    began_monotonic_s: float | None = None
    """Start of the counting: when all monitors were running; of probe and profile, their first sample."""
    ended_monotonic_s: float | None = None
    """End of the counting: before the first monitor was stopped; of probe and profile, their last sample."""
    daemon_cpu_s: float | None = None
    """CPU time of the daemons that work for it over the measure phase, from the trace, for any purpose."""
    engine_cpu_s: float | None = None
    """Probe: CPU time of the engine's daemons and shims over the measure phase, with any monitors; `null` without
    an engine."""
    block_source: str | None = None
    """Probe: `tp_btf/block_rq_issue`, or `none` if block requests of control groups could not be counted."""
    block_refused: str | None = None
    """Probe: why they could not be counted."""

    file: str | None = None
    """Name of the [log](import.md#logs-of-monitors), for an imported run."""
    sha256: str | None = None
    """Digest of the log."""
    offset_s: float | None = None
    """Seconds added to the log's clock."""
    offset_from: str | None = None
    """How they are known."""

    @model_serializer(mode="wrap")
    def _as_written(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what was never said."""
        return {name: value for name, value in whole(self).items() if name in self.model_fields_set}
