"""What a virtual machine, its task or QEMU said last, for a message: the whole of it is among the raw files."""

from __future__ import annotations

from pathlib import Path

from tare.sites import Host

_LINES, _LONGEST = 3, 160
_PANIC = "Kernel panic"
"""Of the dump that follows it, the last lines tell nothing."""


def words_of(host: Host, path: str) -> str | None:
    """`console: …` with the last lines of such a file, and a panic before them; `None` where there are none."""
    text = (host.read(path) or b"").decode(errors="replace")
    lines = [line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    last = lines[-_LINES:]
    panic = next((line for line in reversed(lines) if _PANIC in line), None)
    told = last if panic is None or panic in last else [panic, *last[1:]]
    return f"{Path(path).suffix.lstrip('.')}: {' / '.join(told)}"
