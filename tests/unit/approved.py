"""Texts that were approved: the same words, and the same numbers but for the last digits, which CPUs round.

`TARE_WRITE_GOLDEN=1` has a text that differs written in the place of what was approved, for its diff to be read.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from pathlib import Path

_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
# Linear algebra picks its kernels by the CPU and sums in another order; p-values of 1e-9 keep some ten digits.
_RELATIVE = 1e-8
_ABSOLUTE = 1e-14
_SHOWN = 40


def assert_as_approved(text: str, path: Path) -> None:
    """`text` is what `path` keeps; numbers with a fraction within 1e-8 of it. Raises AssertionError with a diff."""
    approved = path.read_text(encoding="utf-8") if path.exists() else ""
    steady = _with_approved_digits(text, approved)
    if steady == approved:
        return
    if os.environ.get("TARE_WRITE_GOLDEN"):
        path.write_text(steady, encoding="utf-8")
        return
    names = (f"{path.name}, approved", f"{path.name}, here")
    diff = list(difflib.unified_diff(approved.splitlines(), steady.splitlines(), *names, lineterm="", n=1))
    more = f"\n… {len(diff) - _SHOWN} lines more" if len(diff) > _SHOWN else ""
    why = "\n".join(diff[:_SHOWN]) + more
    raise AssertionError(f"not as approved; TARE_WRITE_GOLDEN=1 writes it:\n{why}")


def _with_approved_digits(text: str, approved: str) -> str:
    """`text`, with every number that is as good as the approved one written like it, line by line."""
    there, here = approved.splitlines(keepends=True), text.splitlines(keepends=True)
    kept = list(here)
    old, new = ([_NUMBER.sub("#", line) for line in lines] for lines in (there, here))
    for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            kept[block.b + offset] = _line(here[block.b + offset], there[block.a + offset])
    return "".join(kept)


def _line(here: str, there: str) -> str:
    known = iter(_NUMBER.findall(there))

    def steady(match: re.Match[str]) -> str:
        old = next(known)
        return old if _close(float(match[0]), float(old)) else match[0]

    return _NUMBER.sub(steady, here)


def _close(here: float, there: float) -> bool:
    return math.isclose(here, there, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
