"""Why a combination of settings is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """The clashing keys, the one to name first; the reason; what to write instead."""

    keys: tuple[tuple[str | int, ...], ...]
    why: str
    hint: str
