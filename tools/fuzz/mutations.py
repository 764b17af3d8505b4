"""Changes to whole inputs that keep most of their structure, so that a reader is reached behind its first check."""

from __future__ import annotations

import copy
import re
from random import Random
from typing import Any

SCALARS: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 10**30, -(10**30), 1e308, -1e308, 5e-324, 0.1, float("nan"), float("inf"),
    "", " ", "a\nb", "\u202e", "\ud800", "\x00", "../../etc/passwd", "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "\x1b]0;x\x07", "x" * 3000, "{}", "%s%n", "${jndi:x}", "NaN", "1e999", "-0", "0x10", "2026-02-30", "a" * 64,
)  # fmt: skip
HOSTILE = (
    "<script>alert(1)</script>", "</style></title><img src=x onerror=alert(1)>", '" onmouseover="alert(1)',
    "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1+2", "\t=1", "|x|\n# [l](javascript:alert(1)) `z` ![i](http://x/y)",
    "\x1b]0;owned\x07\x1b[2J", "\u202egnp.exe\u2066", "two\r\nlines", "]]></svg><script>alert(2)</script>",
    "{{ 7 * 7 }}{% raw %}", "../../etc/passwd", "javascript:alert(1)", "[bold]x[/bold]", "x" * 3000, "",
    "$(id)`id`", "&lt;b&gt;", "\\", "%s%n",
)  # fmt: skip
"""Texts that mean something in HTML, SVG, CSS, Markdown, spreadsheets, terminals, templates, shells or paths."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NUMBERS = (
    "",
    "-1",
    "0",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "9" * 25,
    "0.0",
    "1e-320",
    "१",
    "0x1f",
    "1,5",
    "--1",
    ".",
)


def tree(given: Any, chance: Random) -> Any:
    """A copy of a tree of mappings and lists with one to three changes."""
    changed = copy.deepcopy(given)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        holders = list(_holders(changed))
        if not holders:
            return chance.choice(SCALARS)
        _change(chance.choice(holders), changed, chance)
    return changed


def _holders(value: Any) -> list[Any]:
    holders, todo = [], [value]
    while todo:
        each = todo.pop()
        if isinstance(each, (dict, list)) and each:
            holders.append(each)
            todo += list(each.values() if isinstance(each, dict) else each)
    return holders


def crossed(given: Any, other: Any, chance: Random) -> Any:
    """A copy of a tree with one to three parts of another one under the same keys."""
    changed = copy.deepcopy(given)
    for _ in range(chance.choice((1, 1, 2, 3))):
        here = [(holder, key) for holder in _holders(changed) if isinstance(holder, dict) for key in holder]
        holder, key = chance.choice(here)
        there = [each[key] for each in _holders(other) if isinstance(each, dict) and key in each]
        if there:
            holder[key] = copy.deepcopy(chance.choice(there))
    return changed


def strings(given: Any, chance: Random, share: float) -> Any:
    """A copy of a tree with that share of its texts replaced, its keys left as they are."""
    if isinstance(given, dict):
        return {key: strings(each, chance, share) for key, each in given.items()}
    if isinstance(given, list):
        return [strings(each, chance, share) for each in given]
    if isinstance(given, str) and chance.random() < share:
        return chance.choice(HOSTILE)
    return given


def _change(holder: Any, whole: Any, chance: Random) -> None:
    key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = chance.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[str(chance.choice(SCALARS))] = holder.pop(key)
    elif kind == 2:
        holder[key] = copy.deepcopy(chance.choice(_holders(whole)))
    elif kind == 3 and isinstance(holder, list):
        holder[:] = holder * chance.choice((2, 3, 40))
    elif kind == 4:
        holder[key] = [holder[key]] if chance.random() < 0.5 else {"a": holder[key]}
    elif kind == 5:
        holder[key] = str(holder[key])
    else:
        holder[key] = chance.choice(SCALARS)


def text(given: str, chance: Random) -> str:
    """The output of a tool: lines lost, doubled, moved or cut, and other numbers in them."""
    lines = given.splitlines(keepends=True)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if not lines:
            break
        at = chance.randrange(len(lines))
        kind = chance.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            lines.insert(chance.randrange(len(lines)), lines.pop(at))
        elif kind == 3:
            lines[at:] = [lines[at][: chance.randrange(len(lines[at]) + 1)]]
        elif kind == 4:
            where = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:where] + str(chance.choice(SCALARS)) + lines[at][where:]
        else:
            lines[at] = _other_number(lines[at], chance)
    return "".join(lines)


def _other_number(line: str, chance: Random) -> str:
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line[::-1]
    match = chance.choice(numbers)
    return line[: match.start()] + chance.choice(_NUMBERS) + line[match.end() :]


def binary(given: bytes, chance: Random) -> bytes:
    """Bytes changed, cut off, doubled or blanked."""
    data = bytearray(given)
    for _ in range(chance.choice((1, 3, 20, 200))):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(12)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at : at + 512] = bytes(len(data[at : at + 512]))
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(64)]
        else:
            data[at] = chance.randrange(256)
    return bytes(data)
