"""docker stats: its table, as a terminal shows it again and again, and `--format json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import ClassVar

from tare.imports.monitors import Log, Sample, Value, number

_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CELLS = re.compile(r" {2,}")


class DockerStats:
    """CPU of containers by their names; it prints no time."""

    title: ClassVar[str] = "docker stats (table, JSON)"

    def recognises(self, text: str) -> bool:
        """Its heading, or the keys of its JSON."""
        head = text[:2000]
        return '"CPUPerc":' in head or ("CONTAINER" in head and "CPU %" in head and "MEM USAGE" in head)

    def read(self, text: str) -> Log:
        """Read frames: what comes until a container comes again, or a heading."""
        frames: list[dict[str, float]] = []
        for entry in _entries(text):
            if entry is None or not frames or entry[0] in frames[-1]:
                frames.append({})
            if entry is not None:
                frames[-1][entry[0]] = entry[1]
        return Log(
            tuple(
                Sample(None, tuple(Value("cpu_percent", name, value) for name, value in frame.items()))
                for frame in frames
                if frame
            )
        )


def _entries(text: str) -> Iterator[tuple[str, float] | None]:
    """Yield name and CPU of each line, and `None` for a heading."""
    names: list[str] = []
    for line in _CODES.sub("", text).split("\n"):
        bare = line.strip()
        if bare.startswith("{"):
            tree = json.loads(bare)
            name, told = str(tree.get("Name") or tree["Container"]), str(tree["CPUPerc"])
        elif bare.startswith("CONTAINER"):
            names = _CELLS.split(bare)
            yield None
            continue
        elif names and len(cells := _CELLS.split(bare)) == len(names):
            named = dict(zip(names, cells, strict=True))
            name, told = named.get("NAME", cells[0]), named["CPU %"]
        else:
            continue
        if (value := number(told.removesuffix("%"))) is not None:
            yield name, value
