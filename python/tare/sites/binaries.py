"""Where tare's own programs in Rust are: beside its scripts, or in the build directory of a checkout."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostSilent, RunFailed
from tare.sites import Host

_QUICK_S = 10.0


@dataclass(frozen=True)
class Binary:
    """`words`: arguments that start nothing, upon which one of this version says `proof`, on either output."""

    name: str
    words: tuple[str, ...]
    proof: str

    @property
    def hint(self) -> str:
        """How to come by it."""
        return "it comes with tare's wheel; in a checkout, `make setup` makes it"


PROBE = Binary("tare-probe", ("record", "--help"), "--targets")
"""One that takes further targets while it records."""
AGENT = Binary("tare-agent", (), "acts for tare on another machine")
LOAD = Binary("tare-load", ("run", "--help"), "--most-waiting")
GUEST = Binary("tare-guest", (), "process 1 of a virtual machine")


def candidates(binary: Binary) -> Iterator[str]:
    """In the order in which they are tried. PATH is no guide: an environment need not be activated to be used."""
    yield str(Path(sysconfig.get_path("scripts")) / binary.name)
    for profile in ("release", "debug"):
        yield str(Path(__file__).parents[3] / "target" / profile / binary.name)


def find(host: Host, binary: Binary) -> str | None:
    """The first that runs and is the one that is meant; `None` where there is none."""
    return next((path for path in candidates(binary) if _proves(host, path, binary)), None)


def _proves(host: Host, path: str, binary: Binary) -> bool:
    try:
        done = host.run([path, *binary.words], timeout_s=_QUICK_S, check=False)
    except HostSilent:
        raise
    except RunFailed:
        return False
    return binary.proof in done.text + done.stderr.decode(errors="replace")
