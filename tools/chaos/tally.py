"""Counts of faults by kind and phase, of sessions that may be added up: JSON, and a table in Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PHASES = ("starting", "preparing", "provision", "load", "warm-up", "measure", "cool-down", "collect", "teardown")
"""All others are between runs."""


class BrokenOff(RuntimeError):
    """Why a call cannot go on, one sentence; neither tare's doing nor a violation."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


@dataclass
class Tally:
    """`cells`: (kind, phase) → faults; `failed`: reasons of attempts; `seeds`: study and seed, one a call.

    `missed`: kind → how often it was its turn and there was nothing that it could strike.

    `broken_off`: why calls could not go on, which is no violation, and no call that held either.
    """

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    broken_off: list[str] = field(default_factory=list)
    attempts: int = 0
    stores: int = 0
    seconds: int = 0

    @property
    def faults(self) -> int:
        """All that struck."""
        return self.cells.total()

    def add(self, other: Tally) -> None:
        """What another call counted."""
        self.cells += other.cells
        self.sessions += other.sessions
        self.failed += other.failed
        self.missed += other.missed
        self.violations += other.violations
        self.seeds += other.seeds
        self.broken_off += other.broken_off
        self.attempts += other.attempts
        self.stores += other.stores
        self.seconds += other.seconds

    @property
    def kinds(self) -> Counter[str]:
        """Faults of each kind."""
        counts = Counter[str]()
        for (kind, _), count in self.cells.items():
            counts[kind] += count
        return counts

    @property
    def never_struck(self) -> list[str]:
        """Kinds whose turn it was, and which never found anything."""
        return sorted(kind for kind in self.missed if not self.kinds[kind])

    def tree(self) -> dict[str, Any]:
        """To be written as JSON."""
        cells: dict[str, dict[str, int]] = {}
        for (kind, phase), count in sorted(self.cells.items()):
            cells.setdefault(kind, {})[phase] = count
        return {
            "format": 1, "faults": self.faults, "violations": len(self.violations), "seeds": self.seeds,
            "stores": self.stores, "attempts": self.attempts, "seconds": self.seconds,
            "sessions": dict(self.sessions), "cells": cells, "failed": dict(self.failed.most_common()),
            "missed": dict(sorted(self.missed.items())), "never_struck": self.never_struck,
            "found": self.violations, "broken_off": self.broken_off,
        }  # fmt: skip

    @classmethod
    def of(cls, tree: dict[str, Any]) -> Tally:
        """The reverse of `tree`."""
        cells = Counter(
            {(kind, phase): count for kind, row in tree["cells"].items() for phase, count in row.items()}
        )
        return cls(
            cells, Counter(tree["sessions"]), Counter(tree["failed"]), Counter(tree.get("missed", ())),
            list(tree["found"]), list(tree["seeds"]),
            list(tree.get("broken_off", ())), tree["attempts"], tree["stores"], tree["seconds"],
        )  # fmt: skip

    def table(self) -> str:
        """A row a kind, a column a phase that was hit."""
        columns = [phase for phase in PHASES if any(hit == phase for _, hit in self.cells)]
        rest = any(phase not in PHASES for _, phase in self.cells)
        heads = ["fault", *columns, *(["between"] if rest else []), "all"]
        rows = [_row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
        for kind in sorted(self.kinds):
            counts = [self.cells[kind, phase] for phase in columns]
            between = [self.kinds[kind] - sum(counts)] if rest else []
            rows.append(_row([kind, *(str(count or "") for count in (*counts, *between)), str(self.kinds[kind])]))
        sums = [sum(count for (_, hit), count in self.cells.items() if hit == phase) for phase in columns]
        between = [self.faults - sum(sums)] if rest else []
        rows.append(_row(["all", *(str(count) for count in (*sums, *between, self.faults))]))
        summary = f"{self.faults} faults, {len(self.violations)} violations, {self.attempts} attempts kept"
        ended = f" {len(self.broken_off)} calls were broken off." if self.broken_off else ""
        never = f" Found nothing to strike: {', '.join(self.never_struck)}." if self.never_struck else ""
        return "\n".join([*rows, "", f"{summary} in {self.stores} stores, {self.seconds} s.{ended}{never}", ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def merged(paths: Iterable[Path]) -> Tally:
    """Of the JSON files of several calls."""
    whole = Tally()
    for path in paths:
        whole.add(Tally.of(json.loads(path.read_text())))
    return whole
