"""Whether what tare keeps can be kept where it is told to."""

from __future__ import annotations

from pathlib import PurePosixPath

from tare.doctor import Line, cannot, ok
from tare.sites import Host
from tare.sites.layout import ENV

_LIMIT_S = 10.0


def home_line(host: Host, home: str) -> Line:
    """`home` need not be there yet: then its nearest parent that is there must be a directory, to be written to."""
    advice = f"set {ENV} to a directory that you may write to"
    for place in (PurePosixPath(home), *PurePosixPath(home).parents):
        if _so(host, "-d", place):
            if _so(host, "-w", place):
                return ok("home", home if str(place) == home else f"{home}, to be made in {place}")
            return cannot("home", f"{home} cannot be made or written: {place} is read-only for this user", advice)
        if _so(host, "-e", place) or _so(host, "-L", place):
            return cannot("home", f"{home} cannot be made: {place} is no directory", advice)
    return cannot("home", f"{home} cannot be looked at", advice)


def _so(host: Host, test: str, place: PurePosixPath) -> bool:
    """As test(1) has it."""
    return host.run(["test", test, str(place)], timeout_s=_LIMIT_S, check=False).code == 0
