"""iostat: text with `-x` or without, and JSON (`-o JSON`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tare.imports.monitors import ALL, MODES, Log, Sample, Value, number
from tare.imports.monitors.clock import HEADER, TIME, day, seconds

_FIELDS = {
    "r/s": "reads", "w/s": "writes", "rkB/s": "read_kib", "wkB/s": "written_kib", "kB_read/s": "read_kib",
    "kB_wrtn/s": "written_kib", "r_await": "read_await", "w_await": "write_await", "aqu-sz": "queue",
    "avgqu-sz": "queue", "util": "util", "%util": "util",
}  # fmt: skip
_MEBI = {"rMB/s": "read_kib", "wMB/s": "written_kib", "MB_read/s": "read_kib", "MB_wrtn/s": "written_kib"}
_STAMP = re.compile(rf"\d[\d/.-]+[T ]{TIME}(?:[+-]\d\d:?\d\d|Z)?$")
_UTC = re.compile(r"(?:\+00:?00|Z)$")


class Iostat:
    """Reports of CPU and disks, or of one of them."""

    title: ClassVar[str] = "iostat (text, JSON)"

    def recognises(self, text: str) -> bool:
        """A heading that only iostat prints."""
        head = text[:3000]
        if '"sysstat"' in head:
            return '"disk_device"' in text[:20_000] or '"avg-cpu"' in head
        return text.lstrip().startswith("Linux ") and re.search(r"^(?:avg-cpu:|Device:? )", head, re.M) is not None

    def read(self, text: str) -> Log:
        """Read the reports; the first is an average since boot."""
        return _of_json(text) if text.lstrip()[:1] == "{" else _of_text(text)


def _of_json(text: str) -> Log:
    host = json.loads(text)["sysstat"]["hosts"][0]
    stamps = [str(each.get("timestamp", "")) for each in host["statistics"]]
    samples = [
        Sample(_moment(at), tuple(_values(each))) for at, each in zip(stamps, host["statistics"], strict=True)
    ]
    is_utc = bool(stamps) and all(_UTC.search(at) for at in stamps)
    return Log(tuple(samples[1:]), is_utc=is_utc, cpus=host.get("number-of-cpus"))


def _values(tree: Mapping[str, Any]) -> Iterator[Value]:
    for name, value in tree.get("avg-cpu", {}).items():
        if name in MODES and (share := number(str(value))) is not None:
            yield Value(MODES[name], ALL, share)
    for disk in tree.get("disk", ()):
        yield from _of_disk(disk["disk_device"], {name: str(value) for name, value in disk.items()})


def _of_disk(name: str, figures: Mapping[str, str]) -> Iterator[Value]:
    for title, cell in figures.items():
        quantity, factor = (_FIELDS.get(title), 1.0) if title in _FIELDS else (_MEBI.get(title), 1024.0)
        if quantity is not None and (value := number(cell)) is not None:
            yield Value(quantity, name, value * factor)


def _moment(stamp: str) -> float | None:
    on = day(stamp)
    return None if on is None else seconds(on, stamp)


class _Reports:
    """Reports of a text, as their lines come: CPU and devices, or one of them."""

    def __init__(self) -> None:
        self.samples: list[tuple[float | None, list[Value]]] = []
        self.stamps: list[str] = []
        self._first = ""
        self._names: list[str] = []

    def line(self, line: str) -> None:
        """Take the next line. The heading that began the first report begins each one."""
        cells, bare = line.split(), line.strip()
        title = cells[0].rstrip(":") if cells else ""
        if _STAMP.match(bare):
            self.stamps.append(bare)
        elif title in ("avg-cpu", "Device"):
            self._first = self._first or title
            if title == self._first:
                self.samples.append((_moment(self.stamps[-1]) if self.stamps else None, []))
            self._names = cells
        elif not cells:
            self._names = []
        elif self._names:
            self.samples[-1][1].extend(self._values(cells))

    def _values(self, cells: list[str]) -> Iterator[Value]:
        title, *names = self._names
        if title == "avg-cpu:":
            for name, cell in zip(names, cells, strict=False):
                if name[1:] in MODES and (value := number(cell)) is not None:
                    yield Value(MODES[name[1:]], ALL, value)
        elif len(cells) == 1 + len(names):
            yield from _of_disk(cells[0], dict(zip(names, cells[1:], strict=True)))


def _of_text(text: str) -> Log:
    match, reports = HEADER.search(text), _Reports()
    for line in text.split("\n"):
        reports.line(line)
    samples = tuple(Sample(moment, tuple(values)) for moment, values in reports.samples[1:])
    is_utc = bool(reports.stamps) and all(_UTC.search(stamp) for stamp in reports.stamps)
    return Log(samples, is_utc=is_utc, cpus=int(match.group(2)) if match else None)
