"""Where the program tare-probe is: beside tare's own scripts, or in the build directory of a checkout."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tare.errors import RunFailed
from tare.sites import Host

NAME = "tare-probe"
HINT = "it comes with tare's wheel; in a checkout, `make setup` makes it"
_QUICK_S = 10.0


def candidates() -> Iterator[str]:
    """In the order in which they are tried. PATH is no guide: an environment need not be activated to be used."""
    yield str(Path(sysconfig.get_path("scripts")) / NAME)
    for profile in ("release", "debug"):
        yield str(Path(__file__).parents[3] / "target" / profile / NAME)


def find(host: Host) -> str | None:
    """The first that runs and can be told of targets while it records; `None` where there is none."""
    return next((path for path in candidates() if _serves(host, path)), None)


def _serves(host: Host, path: str) -> bool:
    try:
        return "--targets" in host.run([path, "record", "--help"], timeout_s=_QUICK_S, check=False).text
    except RunFailed:
        return False
