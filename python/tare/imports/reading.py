"""One file of others' results → the runs that it tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tare.errors import RunFailed, StudyError
from tare.imports.cassandra_stress import measurement_of_cassandra_stress
from tare.imports.mapping import CsvParser, MappingFile, ToolParser
from tare.imports.sysbench import measurement_of_sysbench
from tare.imports.table import LARGEST_FIGURE, rows
from tare.run.record import to_tree
from tare.workloads import Measurement
from tare.workloads.ycsb.measurement import Asked, measurement
from tare.workloads.ycsb.output import read_output

_LARGEST = 64 << 20
_PACKED: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""First bytes of what is no longer text."""


@dataclass(frozen=True)
class Told:
    """A run as a file tells it: the parts that stood inside, a measurement or why there is none, the raw text.

    `place`: the file, and of a table the line.
    """

    place: str
    parts: Mapping[str, str]
    measurement: Mapping[str, Any] | None
    failure: str | None
    raw: bytes


def _ycsb(text: str, max_error_share: float) -> Measurement:
    return measurement(read_output(text), Asked(max_error_share=max_error_share))


TOOLS: Mapping[str, Callable[[str, float], Measurement]] = {
    "ycsb": _ycsb,
    "sysbench": measurement_of_sysbench,
    "cassandra-stress": measurement_of_cassandra_stress,
}
"""Generator → what reads its output; the second argument is the share of errors that is acceptable."""


def read_file(path: Path, file: MappingFile) -> Iterator[Told]:
    """The runs of a file: one, but for a table one a row. Raises `StudyError` for what cannot be read at all."""
    raw = _bytes(path)
    if isinstance(file.parser, CsvParser):
        yield from (
            Told(row.place, row.parts, row.measurement, row.failure, row.raw)
            for row in rows(raw, file.parser, str(path))
        )
    else:
        yield _one(raw, file.parser, str(path))


def _one(raw: bytes, parser: ToolParser, place: str) -> Told:
    if why := _no_text(raw):
        return Told(place, {}, None, why, raw)
    try:
        found = TOOLS[parser.name](raw.decode(errors="replace"), parser.max_error_share)
    except RunFailed as error:
        return Told(place, {}, None, str(error), raw)
    if (figure := _impossible(asdict(found))) is not None:
        return Told(place, {}, None, f"a figure of {figure:g} cannot be meant", raw)
    return Told(place, {}, to_tree(found), None, raw)


def _impossible(tree: Any) -> float | None:
    """A number that no measurement holds: not finite, or above `LARGEST_FIGURE`."""
    if isinstance(tree, Mapping):
        return next((found for each in tree.values() if (found := _impossible(each)) is not None), None)
    if isinstance(tree, list | tuple):
        return next((found for each in tree if (found := _impossible(each)) is not None), None)
    return tree if isinstance(tree, float) and not abs(tree) <= LARGEST_FIGURE else None


def _no_text(raw: bytes) -> str | None:
    """Why a file cannot be what a program has printed; `None` where it may be."""
    if not raw.strip():
        return "the file is empty"
    if packed := next((name for magic, name in _PACKED.items() if raw.startswith(magic)), None):
        return f"the file is compressed ({packed}): unpack it and import it anew"
    return "the file has bytes that are no text" if b"\0" in raw else None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > _LARGEST:
        raise StudyError(f"{path} is larger than {_LARGEST >> 20} MiB", hint="is this a generator's output?")
    return raw
