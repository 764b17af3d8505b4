"""Texts that were approved: the same words, and the same numbers but for the last digits, which CPUs round."""

from __future__ import annotations

import math
import re
from pathlib import Path

_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
# Linear algebra picks its kernels by the CPU and sums in another order; p-values of 1e-9 keep some ten digits.
_RELATIVE = 1e-8
_ABSOLUTE = 1e-14


def assert_as_approved(text: str, path: Path) -> None:
    """`text` is what `path` keeps; numbers with a fraction within 1e-8 of it. Raises AssertionError."""
    approved = path.read_text(encoding="utf-8")
    assert _NUMBER.sub("#", text) == _NUMBER.sub("#", approved)
    pairs = zip(_NUMBER.findall(text), _NUMBER.findall(approved), strict=True)
    other = [(here, there) for here, there in pairs if not _close(float(here), float(there))]
    assert not other, f"other numbers than {path.name} has (here, approved): {other[:5]}"


def _close(here: float, there: float) -> bool:
    return math.isclose(here, there, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
