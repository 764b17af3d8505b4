"""Which machine a calibration holds for, and which versions it was made under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tare.study.values import Strict

_KEY_DIGITS = 16
_GIB = 1 << 30


class Identity(Strict):
    """A machine as its hardware tells, whatever is booted on it, and the versions that run there.

    `memory_gib` is rounded: kernels keep a little more or less of it for themselves.
    """

    cpu_model: str | None
    cpu_count: int | None
    memory_gib: int | None
    kernel: str | None
    engine: str | None
    engine_version: str | None

    @property
    def machine_key(self) -> str:
        """Names the machine."""
        return _key(self.cpu_model, self.cpu_count, self.memory_gib)

    @property
    def versions_key(self) -> str:
        """Names kernel and engine."""
        return _key(self.kernel, self.engine, self.engine_version)


def identity_of(host: Mapping[str, Any], engine: Mapping[str, Any] | None) -> Identity:
    """From the facts that every run's record holds."""
    memory = host.get("memory_total_bytes")
    engine = engine or {}
    return Identity(
        cpu_model=host.get("cpu_model"),
        cpu_count=host.get("cpu_count"),
        memory_gib=None if memory is None else round(memory / _GIB),
        kernel=host.get("kernel"),
        engine=engine.get("engine"),
        engine_version=engine.get("engine_version"),
    )


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_KEY_DIGITS]
