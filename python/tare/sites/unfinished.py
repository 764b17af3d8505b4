"""Files that a killed tare or agent was writing in a home: beside their target, to be renamed to it.

No ledger lists them, and their names are random. They are looked for only where nothing but tare writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

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
_SUFFIX = re.compile(r".\.(?:[0-9a-f]{32}|[0-9a-f]{16}|\d+-\d+)$")
"""What follows the target's name: of a `put` here or through a container, or of an agent (its files.rs)."""
_PART = re.compile(r".\.part$")
_DRAFT = re.compile(r"^\..+\.[0-9a-f]{8}$")


def unfinished(host: Host, layout: Layout, *, older_than_s: float) -> tuple[Made, ...]:
    """Return such files of a home that nobody wrote to for so long, as if this process had noted them."""
    found = [
        str(path)
        for place, (depth, named) in _places(layout).items()
        for path in _files(host, place, depth, older_than_s)
        if named.search(path.name)
    ]
    return tuple(Made(Kind.PATH, path, host.name, own_process()) for path in sorted(found))


def _places(layout: Layout) -> Mapping[str, tuple[int, re.Pattern[str]]]:
    """Directory → deepest level of files below it, and their names. Stores and unpacked packages lie deeper."""
    return {
        str(layout.machines): (2, _SUFFIX),
        str(layout.unit_costs): (3, _SUFFIX),
        str(layout.calibration): (3, _SUFFIX),
        str(layout.images / "keys"): (1, _PART),
        str(layout.rentals): (2, _DRAFT),
    }


def _files(host: Host, place: str, depth: int, older_than_s: float) -> list[PurePosixPath]:
    """Regular files; none if there is no such directory."""
    age = ("-mmin", f"+{older_than_s / _S_PER_MIN:.0f}")
    words = ["find", place, "-maxdepth", str(depth), "-type", "f", *age, "-print0"]
    found = host.run(words, timeout_s=_CALL_S, check=False).stdout.decode(errors="surrogateescape")
    return [PurePosixPath(path) for path in found.split("\0") if path]
