"""vmstat, with time stamps (`-t`) or without."""

from __future__ import annotations

from typing import ClassVar

from tare.imports.monitors import ALL, MODES, Log, Sample, Value, number
from tare.imports.monitors.clock import day, seconds

_DISK = {"bi": "read_kib", "bo": "written_kib"}
"""Blocks of 1 KiB per second (vmstat(8))."""


class Vmstat:
    """Lines below a heading that comes again and again."""

    title: ClassVar[str] = "vmstat"

    def recognises(self, text: str) -> bool:
        """The line above its heading."""
        return text.startswith("procs -") and "memory" in text.split("\n", 1)[0]

    def read(self, text: str) -> Log:
        """Read the lines; the first is an average since boot."""
        names, samples, is_utc = list[str](), list[Sample](), False
        for line in text.split("\n"):
            cells = line.split()
            if "us" in cells and "id" in cells:
                names = cells
                is_utc = names[-1] in ("UTC", "GMT")
            elif names and (sample := _sample(names, cells)) is not None:
                samples.append(sample)
        return Log(tuple(samples[1:]), is_utc=is_utc)


def _sample(names: list[str], cells: list[str]) -> Sample | None:
    if not cells or number(cells[0]) is None or len(cells) < len([name for name in names if name.islower()]):
        return None
    named = dict(zip(names, cells, strict=False))
    figures = [
        *((MODES[name], ALL, cell) for name, cell in named.items() if name in ("us", "sy", "id", "wa", "st")),
        *((_DISK[name], "total", cell) for name, cell in named.items() if name in _DISK),
    ]
    values = tuple(Value(name, of, value) for name, of, cell in figures if (value := number(cell)) is not None)
    on = day(cells[-2]) if len(cells) > 2 else None
    return Sample(None if on is None else seconds(on, cells[-1]), values)
