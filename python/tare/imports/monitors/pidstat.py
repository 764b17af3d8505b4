"""pidstat: CPU time of processes, with one table for each interval or one line for each process (`-h`)."""

from __future__ import annotations

import re
from typing import ClassVar

from tare.imports.monitors import Log, Sample, Value, number
from tare.imports.monitors.clock import HEADER, TIME, DayClock, add, day

_LINE = re.compile(rf"#? *({TIME}|\d{{9,10}}|Time)\s+(.*)")


class Pidstat:
    """Processes that were active, by their commands."""

    title: ClassVar[str] = "pidstat -u"

    def recognises(self, text: str) -> bool:
        """Its heading."""
        return re.search(r"^#? *\S+(?: [AP]M)? .*\sPID\s.*%CPU\s.*Command$", text[:3000], re.M) is not None

    def read(self, text: str) -> Log:
        """Read the tables. A command is the last cell, and may have blanks."""
        header, names = HEADER.search(text), list[str]()
        clock = DayClock(day(header.group(1)) if header else None)
        by_time: dict[str, list[Value]] = {}
        is_epoch = False
        for line in text.split("\n"):
            match = _LINE.match(line.rstrip())
            if match is None:
                continue
            if match.group(2).endswith("Command") and "PID" in match.group(2):
                names = match.group(2).split()
            elif "%CPU" in names:
                cells = match.group(2).split(None, len(names) - 1)
                is_epoch = match.group(1).isdecimal()
                add(by_time.setdefault(match.group(1), []), _row(names, cells))
        samples = tuple(
            Sample(float(at) if is_epoch else clock.at(at), tuple(values)) for at, values in by_time.items()
        )
        return Log(samples, is_utc=is_epoch, cpus=int(header.group(2)) if header else None)


def _row(names: list[str], cells: list[str]) -> list[Value]:
    if len(cells) != len(names):
        return []
    named = dict(zip(names, cells, strict=True))
    value = number(named["%CPU"])
    return [] if value is None else [Value("cpu_percent", f"{named['Command']} pid {named['PID']}", value)]
