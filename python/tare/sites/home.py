"""Whether what tare keeps can be kept where it is told to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from tare.sites import Host
from tare.sites.layout import ENV

_LIMIT_S = 10.0
ADVICE = f"set {ENV} to a directory that you may write to"


@dataclass(frozen=True)
class Home:
    """`place`: the nearest of it and its parents that is there; `fault`: why nothing can be kept there."""

    path: str
    place: str
    fault: str | None = None


def home_on(host: Host, path: str) -> Home:
    """`path` need not be there yet: then its nearest parent that is there must be a directory, to be written to."""
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        if _so(host, "-d", place):
            if _so(host, "-w", place):
                return Home(path, str(place))
            return Home(path, str(place), f"{path} cannot be made or written: {place} is read-only for this user")
        if _so(host, "-e", place) or _so(host, "-L", place):
            return Home(path, str(place), f"{path} cannot be made: {place} is no directory")
    return Home(path, "/", f"{path} cannot be looked at")


def _so(host: Host, test: str, place: PurePosixPath) -> bool:
    """As test(1) has it."""
    return host.run(["test", test, str(place)], timeout_s=_LIMIT_S, check=False).code == 0
