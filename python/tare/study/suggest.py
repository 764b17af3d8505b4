"""Hints: which known name the user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 12
"""Beyond this number, names are no hint."""


def did_you_mean(given: object, known: Iterable[str], *, kind: str = "known") -> str | None:
    """Suggest the closest known name, else list the known names; `None` if there are none."""
    names = sorted(known)
    close = get_close_matches(str(given).lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        meant = next(name for name in names if name.lower() == close[0])
        return f'did you mean "{meant}"?'
    if not names:
        return None
    more = ", …" if len(names) > _MOST else ""
    return f"{kind}: {', '.join(names[:_MOST])}{more}"
