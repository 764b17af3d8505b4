"""Stacks that were sampled in a run: one Parquet file, docs/guides/explain.md."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import StoreError
from tare.plain_files import must_be_regular

if TYPE_CHECKING:
    import polars as pl

PROFILE = "profile.parquet"
"""Name of the file below its monitor's directory."""
VERSION = 1
_FACTS = "tare.profile"
_COLUMNS = ("at_ns", "samples", "subject", "command", "stack")
_TEXTS = ("subject", "command", "stack")


@dataclass(frozen=True)
class ProfileFacts:
    """Facts of a profile. `period_ns`: CPU time that one sample stands for; times are of CLOCK_MONOTONIC.

    `lost`: samples for which there was no room. `crowded`: samples of stacks beyond the limit of their number.
    `slot_ns`: length of a slot, which begins at its `at_ns`. `kernel_symbols_missing`: why kernel functions have no
    names.
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
    """`rows`: at_ns, samples, subject, command, stack (root first, separated by semicolons)."""

    facts: ProfileFacts
    rows: pl.DataFrame


def read_facts(path: Path) -> ProfileFacts:
    """Read the facts of a profile. Raises `StoreError` if there is none, or if this tare cannot read it."""
    from polars.exceptions import PolarsError  # slow to import, and plans do without

    from tare.parquet import read_parquet_metadata

    must_be_regular(path)
    try:
        facts = json.loads(read_parquet_metadata(path)[_FACTS])
    except FileNotFoundError as error:
        raise StoreError(
            f"{path} does not exist", hint="`monitors: {profile: {}}` in a study writes profiles"
        ) from error
    except (OSError, PolarsError, KeyError, ValueError) as error:
        raise StoreError(f"{path} is not a profile of tare-probe: {error}") from error
    if not isinstance(facts, dict) or facts.get("profile_version") != VERSION:
        raise StoreError(f"{path} is a profile of another version", hint=f"this tare reads version {VERSION}")
    numbers = {each.name for each in fields(ProfileFacts)} - {"kernel", "kernel_symbols_missing"}
    wrong = [name for name, value in facts.items() if name in numbers and not isinstance(value, int)]
    if wrong:
        raise StoreError(
            f"{path} has no whole number as its {wrong[0]}", hint="tare-probe did not write it like this"
        )
    try:
        return ProfileFacts(**{each.name: facts[each.name] for each in fields(ProfileFacts)})
    except KeyError as error:
        raise StoreError(f"{path} does not contain its {error.args[0]}", hint="tare-probe writes it") from error


def read_profile(path: Path) -> StackProfile:
    """Read a whole profile. Raises `StoreError` as `read_facts` does, and for a damaged table."""
    from polars.exceptions import PolarsError

    from tare.parquet import must_hold, read_parquet

    facts = read_facts(path)
    try:
        rows = read_parquet(path, columns=_COLUMNS)
        must_hold(rows, _TEXTS, _COLUMNS)
    except (OSError, PolarsError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return StackProfile(facts, rows)
