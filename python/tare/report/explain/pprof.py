"""Stacks as a gzipped profile.proto, for `pprof` and viewers based on it.

Field numbers are those of https://github.com/google/pprof/blob/main/proto/profile.proto; the few required message
types are encoded by hand (https://protobuf.dev/programming-guides/encoding/).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator

from tare.analyze.explain.stacks import ArmStacks
from tare.version import __version__

_NS = 1000.0
_VARINT, _BYTES = 0, 2
_SEVEN_BITS = 0x7F


def pprof(stacks: ArmStacks) -> bytes:
    """Return a profile with two values a stack, nanoseconds per operation: `arm`, shown first, and `baseline`."""
    strings: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    frames: dict[str, int] = {}
    samples = b"".join(_samples(stacks, frames))
    types = b"".join(
        _message(1, _field(1, text(name)) + _field(2, text("nanoseconds"))) for name in ("arm", "baseline")
    )
    locations = b"".join(
        _message(4, _field(1, number) + _message(4, _field(1, number))) for number in frames.values()
    )
    functions = b"".join(
        _message(5, _field(1, number) + _field(2, text(name)) + _field(3, text(name)))
        for name, number in frames.items()
    )
    period = _message(11, _field(1, text("cpu")) + _field(2, text("nanoseconds"))) + _field(12, 1)
    about = f"{stacks.study}: {stacks.arm} beside {stacks.baseline}, an operation, tare {__version__}"
    comment = _field(13, text(about)) + _field(14, text("arm"))
    table = b"".join(_message(6, value.encode()) for value in strings)
    whole = types + samples + locations + functions + table + period + comment
    return gzip.compress(whole, mtime=0)


def _samples(stacks: ArmStacks, frames: dict[str, int]) -> Iterator[bytes]:
    """Yield a sample for every stack of arm or baseline, leaf first, as pprof requires."""
    for stack in sorted({*stacks.stacks, *stacks.baseline_stacks}):
        values = [round(_NS * of.get(stack, 0.0)) for of in (stacks.stacks, stacks.baseline_stacks)]
        if any(values):
            path = [frames.setdefault(frame, len(frames) + 1) for frame in stack.split(";")]
            yield _message(2, _packed(1, reversed(path)) + _packed(2, values))


def _varint(value: int) -> bytes:
    """Encode a non-negative number."""
    encoded = bytearray()
    while value > _SEVEN_BITS:
        encoded.append(value & _SEVEN_BITS | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _packed(number: int, values: Iterable[int]) -> bytes:
    return _message(number, b"".join(map(_varint, values)))
