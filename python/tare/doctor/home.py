"""Whether what tare keeps can be kept where it is told to."""

from __future__ import annotations

from tare.doctor import Line, cannot, ok
from tare.sites import Host
from tare.sites.layout import ADVICE, home_on


def home_line(host: Host, home: str) -> Line:
    """Of TARE_HOME."""
    found = home_on(host, home)
    if found.fault is not None:
        return cannot("home", found.fault, ADVICE)
    return ok("home", home if found.place == home else f"{home}, to be made in {found.place}")
