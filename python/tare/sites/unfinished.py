"""What a killed tare or agent was writing in a home: files and directories beside the target of their rename.

No ledger lists them, and their names are random. They are looked for only where nothing but tare writes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Made
from tare.sites.local import own_process

BESIDE_OTHERS_S = 3600.0
"""Age from which nobody can still be writing such a file, though other tares use the home."""
ALONE_S = 60.0
"""The same while no tare makes runs there: `tare images` and `tare doctor` may still write one."""
_CALL_S = 60.0
_S_PER_MIN = 60.0
_SUFFIX = re.compile(r".\.(?:[0-9a-f]{32}|[0-9a-f]{16})$|(?:^initramfs-[0-9a-f]+|.\.json)\.\d+-\d+$")
"""What follows the target's name: of a `put` here or through a container, or of an agent (its files.rs).

Versions look like the last, so it counts only after names that a `put` of tare writes.
"""
_PART = re.compile(r".\.part$")
_DRAFT = re.compile(r"^\..+\.[0-9a-f]{8}$")
_RENTAL = re.compile(r"^\..+-[0-9a-f]{6}$")
"""The directory of a rental before it is complete, with a login key (cloud/rental.py)."""


@dataclass(frozen=True)
class _Place:
    """Where such files, or directories, lie: at most `depth` levels below `directory`, with such names."""

    directory: str
    depth: int
    named: re.Pattern[str]
    kind: str = "f"


def unfinished(host: Host, layout: Layout, *, older_than_s: float) -> tuple[Made, ...]:
    """Return those of a home that nobody wrote to for so long, as if this process had noted them.

    A host that cannot list them ends no study and no `tare clean`: they are found the next time.
    """
    found = set[PurePosixPath]()
    with suppress(RunFailed):
        for place in _places(layout):
            found |= {path for path in _listed(host, place, older_than_s) if place.named.search(path.name)}
    alone = [str(path) for path in found if found.isdisjoint(path.parents)]
    return tuple(Made(Kind.PATH, path, host.name, own_process()) for path in sorted(alone))


def _places(layout: Layout) -> tuple[_Place, ...]:
    """Stores and unpacked packages lie deeper."""
    return (
        _Place(str(layout.machines), 2, _SUFFIX),
        _Place(str(layout.unit_costs), 3, _SUFFIX),
        _Place(str(layout.calibration), 3, _SUFFIX),
        _Place(str(layout.images / "keys"), 1, _PART),
        _Place(str(layout.rentals), 2, _DRAFT),
        _Place(str(layout.rentals), 1, _RENTAL, "d"),
    )


def _listed(host: Host, place: _Place, older_than_s: float) -> list[PurePosixPath]:
    """Regular files, or directories; none if there is no such directory."""
    age = ("-mmin", f"+{older_than_s / _S_PER_MIN:.0f}")
    words = ["find", place.directory, "-maxdepth", str(place.depth), "-type", place.kind, *age, "-print0"]
    found = host.run(words, timeout_s=_CALL_S, check=False).stdout.decode(errors="surrogateescape")
    return [PurePosixPath(path) for path in found.split("\0") if path]
