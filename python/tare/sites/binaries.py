"""Paths of tare's own Rust programs: beside its scripts, or in a checkout where `make setup` puts them."""

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
    """A program. With the arguments `words` it starts nothing and prints `proof`, if its version fits."""

    name: str
    words: tuple[str, ...]
    proof: str

    @property
    def hint(self) -> str:
        """How to get the program."""
        return "it comes with tare's wheel; in a checkout, `make setup` makes it"


PROBE = Binary("tare-probe", ("record", "--help"), "--targets")
"""tare-probe; its proof shows that it takes further targets while it records."""
AGENT = Binary("tare-agent", (), "acts for tare on another machine")
LOAD = Binary("tare-load", ("run", "--help"), "--most-waiting")
GUEST = Binary("tare-guest", (), "process 1 of a virtual machine")


def candidates(binary: Binary) -> Iterator[str]:
    """Possible paths, in the order of trial. PATH is not used: an environment need not be activated.

    The build directory comes last: `cargo test` replaces the programs there by dynamically linked ones, which start
    in no image.
    """
    yield str(Path(sysconfig.get_path("scripts")) / binary.name)
    checkout = Path(__file__).parents[3]
    yield str(checkout / ".venv" / "bin" / binary.name)
    for profile in ("release", "debug"):
        yield str(checkout / "target" / profile / binary.name)


def find(host: Host, binary: Binary) -> str | None:
    """Path of the first candidate that runs and has the right version; `None` if there is none."""
    return next((path for path in candidates(binary) if _proves(host, path, binary)), None)


def _proves(host: Host, path: str, binary: Binary) -> bool:
    try:
        done = host.run([path, *binary.words], timeout_s=_QUICK_S, check=False)
    except HostSilent:
        raise
    except RunFailed:
        return False
    return binary.proof in done.text + done.stderr.decode(errors="replace")
