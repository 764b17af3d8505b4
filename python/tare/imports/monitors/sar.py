"""sar and mpstat: text, and JSON (`sadf -j`, `mpstat -o JSON`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tare.imports.monitors import ALL, MODES, Log, Sample, Value, number
from tare.imports.monitors.clock import HEADER, TIME, DayClock, add, day, seconds

_LINE = re.compile(rf"({TIME})\s+(.*)")
_DISK: Mapping[str, tuple[str, float]] = {
    "rkB/s": ("read_kib", 1.0), "wkB/s": ("written_kib", 1.0), "rd_sec/s": ("read_kib", 0.5),
    "wr_sec/s": ("written_kib", 0.5), "rd_sec": ("read_kib", 0.5), "wr_sec": ("written_kib", 0.5),
    "rkB": ("read_kib", 1.0), "wkB": ("written_kib", 1.0),
    "aqu-sz": ("queue", 1.0), "avgqu-sz": ("queue", 1.0),
    "%util": ("util", 1.0), "util-percent": ("util", 1.0),
}  # fmt: skip
"""A tool's name → quantity, and its factor: sectors have 512 bytes."""


class Sar:
    """CPU time of the whole machine, and its disks."""

    title: ClassVar[str] = "sar, sadf -j, mpstat"

    def recognises(self, text: str) -> bool:
        """A heading of CPU time or of disks with a time before it, or sadf's keys."""
        head = text[:6000]
        if '"sysstat"' in head:
            return re.search(r'"(?:cpu-load(?:-all)?|disk-device)"', head) is not None
        heading = re.search(rf"^{TIME}\s+(?:CPU\s+%us|DEV\s|tps\s.*\sDEV$)", head, re.M)
        return text.lstrip().startswith("Linux ") and heading is not None

    def read(self, text: str) -> Log:
        """Read every table of CPU time and of disks."""
        return _of_json(text) if text.lstrip()[:1] == "{" else _of_text(text)


def _of_json(text: str) -> Log:
    host = json.loads(text)["sysstat"]["hosts"][0]
    clock = DayClock(day(str(host.get("date", ""))))
    samples, utc = list[Sample](), list[bool]()
    for each in host["statistics"]:
        stamp = each.get("timestamp", {})
        if isinstance(stamp, Mapping):
            on = day(str(stamp.get("date", "")))
            at = None if on is None else seconds(on, str(stamp.get("time", "")))
            utc.append(bool(stamp.get("utc")))
        else:
            at = clock.at(str(stamp))
        samples.append(Sample(at, tuple(_values(each))))
    is_utc = bool(utc) and (all(utc) or host.get("timezone") == "UTC")
    return Log(tuple(samples), is_utc=is_utc, cpus=host.get("number-of-cpus"))


def _values(tree: Mapping[str, Any]) -> Iterator[Value]:
    loads = next((tree[name] for name in ("cpu-load", "cpu-load-all") if name in tree), ())
    for load in loads:
        if str(load.get("cpu")) == ALL:
            known = ((MODES[name], number(str(value))) for name, value in load.items() if name in MODES)
            yield from (Value(mode, ALL, share) for mode, share in known if share is not None)
    for disk in tree.get("disk", ()):
        yield from _of_disk(str(disk["disk-device"]), disk)


def _of_disk(name: str, figures: Mapping[str, Any]) -> Iterator[Value]:
    """Yield each quantity once: some versions print it in two units, or under an old and a new name."""
    found: dict[str, float] = {}
    for title, cell in figures.items():
        if title in _DISK and (value := number(str(cell))) is not None:
            quantity, factor = _DISK[title]
            found[quantity] = value * factor
    yield from (Value(quantity, name, value) for quantity, value in found.items())


def _of_text(text: str) -> Log:
    header, names = HEADER.search(text), list[str]()
    clock = DayClock(day(header.group(1)) if header else None)
    by_time: dict[str, list[Value]] = {}
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        cells = match.group(2).split()
        if any(cell.startswith("%") or cell in ("DEV", "tps") for cell in cells):
            names = cells
        elif names and len(cells) == len(names):
            add(by_time.setdefault(match.group(1), []), _row(names, cells))
    samples = tuple(Sample(clock.at(at), tuple(values)) for at, values in by_time.items() if values)
    return Log(samples, cpus=int(header.group(2)) if header else None)


def _row(names: Sequence[str], cells: Sequence[str]) -> Iterator[Value]:
    named = dict(zip(names, cells, strict=True))
    if named.get("CPU") == ALL:
        for name, cell in named.items():
            if name[1:] in MODES and (value := number(cell)) is not None:
                yield Value(MODES[name[1:]], ALL, value)
    elif "DEV" in named:
        yield from _of_disk(named["DEV"], named)
