"""Validate untrusted Parquet before Polars reads it.

polars takes sizes and counts of pages as they are. Of a negative one it makes an allocation that ends the process,
which no handler sees. The format, in Thrift's compact protocol: https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import ComputeError, PolarsError, SchemaError

from tare.errors import StoreError, is_panic, is_thread_refused

_MAGIC = b"PAR1"
_UNCOMPRESSED, _REPEATED = 0, 2
_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)
_HEADER_OF = {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}
_DEEPEST = 16
_LARGEST_BYTES, _MOST_TIMES = 256 << 20, 1000
"""What is larger in memory is at most so many times its file: tables of tare-probe hold times, which all differ."""
_VARINT_BYTES = 10


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a table. Raises `OSError`, or `PolarsError` for whatever is wrong with its content."""
    try:
        _check(path)
        return pl.read_parquet(path) if columns is None else pl.read_parquet(path, columns=list(columns))
    except BaseException as error:
        if is_panic(error) and not is_thread_refused(error):
            raise ComputeError(str(error)) from error
        raise


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise `StoreError` about `what` for a damaged table, and for a column that is missing or of another type.

    Other errors pass: they are tare's own, as `must_hold` refuses tables of which Python could not compute.
    """
    try:
        yield
    except (OSError, PolarsError) as error:
        said = str(error).partition("\n")[0]
        hint = "`tare store verify` says whether its files are as they were written"
        raise StoreError(f"{what} cannot be read: {said}", hint=hint) from error


def must_hold(table: pl.DataFrame, texts: Collection[str], known: Collection[str]) -> None:
    """Raise `PolarsError` unless columns in `texts` hold text and others numbers, and those in `known` no null."""
    for name, kind in table.schema.items():
        is_right = kind in (pl.String, pl.Categorical) if name in texts else kind.is_numeric() or kind == pl.Boolean
        if not is_right:
            raise SchemaError(f"its column {name} is of type {kind}")
        if name in known and table[name].null_count():
            raise SchemaError(f"its column {name} has unknown values")


def read_parquet_metadata(path: Path) -> Mapping[str, str]:
    """Read what a writer added to the footer. Raises as `read_parquet` does."""
    try:
        return pl.read_parquet_metadata(path)
    except BaseException as error:
        if is_panic(error) and not is_thread_refused(error):
            raise ComputeError(str(error)) from error
        raise


def _check(path: Path) -> None:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 12:
            raise ComputeError("the file is too short for Parquet")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                _check_file(content, size)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise ComputeError(f"the file's own description is damaged ({type(error).__name__})") from error


def _check_file(content: mmap.mmap, size: int) -> None:
    _must(content[size - 4 :] == _MAGIC, "does not end as Parquet")
    length = int.from_bytes(content[size - 8 : size - 4], "little")
    _must(length <= size - 12, "has a footer larger than itself")
    about = _Thrift(content, size - 8 - length, size - 8).struct()
    flat = not any(element.get(3) == _REPEATED for element in about[2])
    groups = about.get(4, [])
    _must(about[3] == sum(group[3] for group in groups), "counts other rows than its groups do")
    chunks = [chunk[3] for group in groups for chunk in group[1]]
    for in_memory in (8 * sum(chunk[5] for chunk in chunks), sum(chunk[6] for chunk in chunks)):
        _must(in_memory <= max(_LARGEST_BYTES, _MOST_TIMES * size), f"has {size} bytes, and its table {in_memory}")
    for group in groups:
        _must(group[3] >= 0, "has a negative number of rows")
        for chunk in group[1]:
            _must(not flat or chunk[3][5] == group[3], "has a column with another number of rows")
            _check_chunk(content, size, chunk[3])


def _check_chunk(content: mmap.mmap, size: int, about: Mapping[int, Any]) -> None:
    codec, values, whole, compressed = about[4], about[5], about[6], about[7]
    if values == 0:
        return
    at = min(start for start in (about.get(11), about[9]) if start)
    end = at + compressed
    _must(
        values >= 0 and whole >= 0 and compressed >= 0 and 0 < at <= end <= size, "has a column outside of itself"
    )
    while at < end and values > 0:
        thrift = _Thrift(content, at, end)
        page = thrift.struct()
        kind, large, small = page[1], page[2], page[3]
        _must(0 <= small <= end - thrift.at and 0 <= large <= whole, "has a page larger than its column")
        _must(codec != _UNCOMPRESSED or large == small, "has a page of two sizes")
        at = thrift.at + small
        if kind not in _HEADER_OF:
            continue
        head = page[_HEADER_OF[kind]]
        count = head[1]
        if kind == _DICTIONARY:
            _must(0 <= count <= large, "has a dictionary with more words than bytes")
            continue
        _must(0 <= count <= values, "has a page with more values than its column")
        values -= count
        if kind == _DATA_2:
            nulls, rows, definitions, repetitions = head[2], head[3], head[5], head[6]
            _must(0 <= nulls <= count and 0 <= rows <= count, "has a page with more rows than values")
            _must(min(definitions, repetitions) >= 0 and definitions + repetitions <= small, "has odd levels")


def _must(right: object, otherwise: str) -> None:
    if not right:
        raise ComputeError(f"the file {otherwise}")


class Kind(IntEnum):
    """What a value is, in Thrift's compact protocol."""

    TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class _Thrift:
    """Reads structures: each is a dict from a field's number to its value. Raises `ValueError` or `LookupError`."""

    def __init__(self, content: mmap.mmap, at: int, end: int) -> None:
        self.at, self._content, self._end = at, content, end

    def struct(self, depth: int = 0) -> dict[int, Any]:
        _deep_enough(depth)
        fields, number = dict[int, Any](), 0
        while (head := self._byte()) != 0:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = kind == Kind.TRUE if kind in (Kind.TRUE, Kind.FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case Kind.I16 | Kind.I32 | Kind.I64:
                value: Any = self._signed()
            case Kind.BINARY:
                value = self._skip(self._varint())
            case Kind.STRUCT:
                value = self.struct(depth + 1)
            case Kind.LIST | Kind.SET:
                value = self._list(depth + 1)
            case Kind.DOUBLE:
                value = self._skip(8)
            case Kind.MAP:
                value = self._map(depth + 1)
            case Kind.BYTE | Kind.TRUE | Kind.FALSE:  # truths in lists and maps have a byte each
                value = self._byte()
            case _:
                raise ValueError(kind)
        return value

    def _list(self, depth: int) -> list[Any]:
        _deep_enough(depth)
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        return [self._value(head & 15, depth) for _ in range(self._left_for(count))]

    def _map(self, depth: int) -> Any:
        _deep_enough(depth)
        if count := self._left_for(self._varint()):
            kinds = self._byte()
            for _ in range(count):
                self._value(kinds >> 4, depth)
                self._value(kinds & 15, depth)

    def _left_for(self, count: int) -> int:
        """Each element has a byte at least."""
        if count > self._end - self.at:
            raise ValueError(count)
        return count

    def _byte(self) -> int:
        if self.at >= self._end:
            raise IndexError(self.at)
        self.at += 1
        return self._content[self.at - 1]

    def _skip(self, count: int) -> Any:
        """Texts and fractions are of no use here."""
        self.at += self._left_for(count)
        return None

    def _varint(self) -> int:
        value = 0
        for number in range(_VARINT_BYTES):
            byte = self._byte()
            value |= (byte & 127) << 7 * number
            if byte < 128:
                return value
        raise ValueError(value)

    def _signed(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _deep_enough(depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(depth)
