"""The ledger of `make truth`: a line of JSON for each comparison whose truth is known; it is only ever added to.

A line is written by one system call and synced before the next study begins. A line that a crash cut off is closed
by the next writer, who writes its comparison again; readers know it by its store and its arm, which come first, and
count it as torn only where no whole line has the same. Ledgers of several machines are merged by adding what is not
there yet. Of two lines for one comparison the last one counts.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from tare.calibrate.outcome import ContrastResult
from tare.study.values import Strict


class Comparison(Strict):
    """One comparison. Effects are natural logarithms of ratios of throughput.

    `store`: the id of the store with its runs. `at`: when its study ended, seconds since the epoch. `commit`:
    of tare's checkout, `None` outside of one. `machine`, `versions`: keys of `tare.calibrate.summary.Identity`.
    `seed`: of the study, which is its number. `injected`: `None` for two instances of the same, whose truth is 0;
    `truth`: by the injection's reading in the same runs. `load`: of the machine's last minute when the study ended,
    for each CPU.
    """

    format: Literal[1] = 1
    store: str
    arm: str
    at: float
    tare: str
    commit: str | None
    machine: str
    versions: str
    cpu_model: str | None
    cpus: int | None
    kernel: str | None
    engine: str | None
    engine_version: str | None
    load: float | None
    protocol: str
    database: str
    path: str
    seed: int
    injected: str | None
    truth: float | None
    n: int
    point: float
    low: float
    high: float
    run_s: float

    @property
    def key(self) -> tuple[str, str]:
        """By which it is known."""
        return self.store, self.arm

    @property
    def group(self) -> tuple[str, ...]:
        """Studies that share a truth: the same machine, protocol, database and path."""
        return self.machine, self.versions, self.protocol, self.database, self.path

    def as_result(self) -> ContrastResult:
        """As calibration judges it."""
        return ContrastResult(
            kind="-".join(self.group[2:]),
            study=self.seed,
            arm=self.arm,
            deployment=self.path,
            injection=self.injected,
            n=self.n,
            point=self.point,
            low=self.low,
            high=self.high,
            spread=0.0,
            truth=self.truth,
            run_s=self.run_s,
            usual=True,
        )


@dataclass(frozen=True)
class Ledger:
    """`torn`: lines that are no comparison, and whose comparison no other line has; one a crash at the most."""

    comparisons: tuple[Comparison, ...]
    torn: int = 0

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Of all that it holds."""
        return frozenset(each.key for each in self.comparisons)


def read(paths: Iterable[Path]) -> Ledger:
    """All of them as one, each comparison once, in the order of files and lines; a missing file is empty."""
    latest: dict[tuple[str, str], Comparison] = {}
    torn: list[bytes] = []
    for line in (line for path in paths if path.exists() for line in _lines(path.read_bytes())):
        try:
            comparison = Comparison.model_validate_json(line)
        except ValidationError:
            torn.append(line)
        else:
            latest[comparison.key] = comparison
    return Ledger(tuple(latest.values()), len({_key(line) or line for line in torn} - {*latest}))


def _lines(content: bytes) -> Iterator[bytes]:
    """A line that was begun behind one that was cut off, as where files were joined, is one of its own."""
    for line in content.splitlines():
        yield from (part for part in re.split(rb'(?=\{"format":)', line) if part.strip(b" \0"))


def _key(torn: bytes) -> tuple[str, str] | None:
    """Of a line that was cut off, where it got that far; of lines of before 2026-11-26 the arm came late."""
    parts = [re.search(rb'"%s":"([^"\\]*)"' % name, torn) for name in (b"store", b"arm")]
    if parts[0] is None or parts[1] is None:
        return None
    return parts[0][1].decode(errors="replace"), parts[1][1].decode(errors="replace")


def add(path: Path, comparisons: Sequence[Comparison]) -> int:
    """Append what is not there yet, whole and synced; how many that was. Two writers wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        known = read([path]).keys
        new = [each for each in comparisons if each.key not in known]
        for each in new:
            size = os.fstat(descriptor).st_size
            cut_off = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            line = b"\n" * cut_off + each.model_dump_json().encode() + b"\n"
            if os.write(descriptor, line) != len(line):
                raise OSError(f"{path} took a part of a line only: the disk is full")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return len(new)
