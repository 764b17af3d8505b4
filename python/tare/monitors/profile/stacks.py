"""Stacks that were sampled in a run: one Parquet file, docs/reference/profile.md."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import StoreError

if TYPE_CHECKING:
    import polars as pl

PROFILE = "profile.parquet"
"""The file's name below its monitor's directory."""
VERSION = 1
_FACTS = "tare.profile"
_COLUMNS = ("at_ns", "samples", "subject", "command", "stack")


@dataclass(frozen=True)
class ProfileFacts:
    """What a profile says of itself. `period_ns`: CPU time that one sample stands for; times are CLOCK_MONOTONIC.

    `lost`: samples that found no room; `crowded`: those of stacks that were too many; `slot_ns`: how long a slot
    lasts from its `at_ns` on; `kernel_symbols_missing`: why functions of the kernel have no names.
    """

    profile_version: int
    kernel: str
    rate_hz: int
    period_ns: int
    cpus: int
    began_ns: int
    ended_ns: int
    slot_ns: int
    samples: int
    lost: int
    crowded: int
    cpu_ns: int
    kernel_symbols_missing: str | None = None


@dataclass(frozen=True, eq=False)
class StackProfile:
    """`rows`: at_ns, samples, subject, command, stack (root first, divided by semicolons)."""

    facts: ProfileFacts
    rows: pl.DataFrame


def read_facts(path: Path) -> ProfileFacts:
    """Raises `StoreError` where there is no profile, or one that this tare cannot read."""
    import polars as pl  # slow to import, and plans do without
    from polars.exceptions import PolarsError

    try:
        facts = json.loads(pl.read_parquet_metadata(path)[_FACTS])
    except FileNotFoundError as error:
        raise StoreError(
            f"{path} does not exist", hint="`monitors: {profile: {}}` in a study makes profiles"
        ) from error
    except (OSError, PolarsError, KeyError, ValueError) as error:
        raise StoreError(f"{path} is no profile of tare-probe: {error}") from error
    if not isinstance(facts, dict) or facts.get("profile_version") != VERSION:
        raise StoreError(f"{path} is a profile of another version", hint=f"this tare reads version {VERSION}")
    try:
        return ProfileFacts(**{each.name: facts[each.name] for each in fields(ProfileFacts)})
    except KeyError as error:
        raise StoreError(f"{path} does not tell its {error.args[0]}", hint="tare-probe writes it") from error


def read_profile(path: Path) -> StackProfile:
    """Raises `StoreError` as `read_facts`, and for a table that is damaged."""
    import polars as pl
    from polars.exceptions import PolarsError

    facts = read_facts(path)
    try:
        rows = pl.read_parquet(path, columns=list(_COLUMNS))
    except (OSError, PolarsError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return StackProfile(facts, rows)
