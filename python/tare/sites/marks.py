"""Marks of what tare makes. What bears none is never removed, whatever a ledger lists.

A ledger may be damaged, foreign or made with intent; so an entry only says where to look. Marks by kind:

- containers, networks and volumes: a label; images: a name below `tare/`
- processes: `TARE_MADE_BY` in the environment of the process, or of its parent (a bare task's supervisor)
- directories: below a home's own directories, or called `tare-…` with a file `.tare` that holds device and inode
- control groups, interfaces and rules: names that only tare gives

crates/agent/src/mark.rs has the same rules; crates/agent/tests/data/marks holds both to them.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tare.errors import RunFailed
from tare.sites import Host

MADE_BY = "TARE_MADE_BY"
"""Variable of every program that tare starts: the tare or agent that started it, as the ledger names it."""
FILE = ".tare"
"""File in a directory outside a home: device and inode of that directory, as `stat -c %d:%i` prints them."""

_CALL_S = 30.0
_OF_HOME = frozenset(
    {"calibration", "images", "live", "machines", "programs", "rentals", "snapshots", "unit-costs", "work"}
)
"""Directories of a home in which nothing but tare writes."""
_SCRATCH = re.compile(r"tare-(?:task|pod)\.[A-Za-z0-9._-]+|tare-[a-z-]+-[0-9a-f]{16}")
_LINK = re.compile(r"tar(?:[bnt]|e[cmop])[0-9a-f]{9}")
"""Of virtual machines, NFS servers and pods."""
_TAG = re.compile(r"[0-9a-f]{12}")
_GROUP = re.compile(r"tare(?:[-.][A-Za-z0-9_.-]+)?")
_IMAGE = "tare/"
_NODE_IMAGE = "tare.invalid/image:"
_MAKE = 'install -d -m "$1" -- "$2" && stat -c %d:%i -- "$2" >"$2/$3"'


def make_marked(host: Host, path: str, mode: str) -> None:
    """Make a directory outside a home, with its mark. `mode`: octal, as install(1) takes it."""
    host.run(["sh", "-c", _MAKE, "sh", mode, path, FILE], timeout_s=_CALL_S)


def refuse_image(name: str) -> None:
    """Raise `RunFailed` unless only tare gives such names to images of an engine."""
    _must_be(name.startswith(_IMAGE), "it is not a name of an image that tare made")


def refuse_node_image(name: str) -> None:
    """Raise `RunFailed` unless only tare gives such names to images of a containerd."""
    _must_be(name.startswith(_NODE_IMAGE), "it is not a name of an image that tare made")


def refuse_link(name: str) -> None:
    """Raise `RunFailed` unless only tare gives such names to interfaces."""
    _must_be(_LINK.fullmatch(name) is not None, "it is not a name of an interface that tare made")


def refuse_rules(maker: str, tag: str) -> None:
    """Raise `RunFailed` unless only tare gives such names to tables and chains of this program."""
    own = maker in {"iptables", "nftables"} and _TAG.fullmatch(tag) is not None
    _must_be(own, "it does not name rules that tare made")


def refuse_cgroup(path: str) -> None:
    """Raise `RunFailed` unless the path leads to a control group below tare's own."""
    parts = path.split("/")
    own = _GROUP.fullmatch(parts[0]) is not None and all(part not in {"", ".", ".."} for part in parts)
    _must_be(own, "it is not a control group below tare's own")


def is_there(host: Host, path: str, home: str) -> bool:
    """Whether something is at a path of the ledger that lies in `home`. Raises `RunFailed` if it is not tare's.

    No part of the path may be a link: it could lead anywhere.
    """
    place = _own_place(path, home)
    _must_be(place.is_relative_to(home) or _SCRATCH.fullmatch(place.name) is not None, _NO_PLACE)
    if host.run(["test", "-e", path, "-o", "-L", path], timeout_s=_CALL_S, check=False).code != 0:
        return False
    real = host.run(["realpath", "-e", "--", str(place.parent)], timeout_s=_CALL_S, check=False).text.rstrip("\n")
    real_home = host.run(["realpath", "-m", "--", home], timeout_s=_CALL_S, check=False).text.rstrip("\n")
    below = place.parent.is_relative_to(home) and PurePosixPath(real) == PurePosixPath(
        real_home, place.parent.relative_to(home)
    )
    if below:
        return True
    _must_be(real == str(place.parent), "a part of it is a link")
    if not _is_marked(host, path):
        raise RunFailed(_NOT_OURS.format(why="it bears no mark of tare's"), hint=f"if it is tare's: rm -r {path}")
    return True


def is_below_own(path: str, home: str) -> bool:
    """Whether a path lies in a directory that only tare makes: for mount points, which are looked at no further."""
    try:
        _own_place(path, home)
    except RunFailed:
        return False
    return True


_NOT_OURS = "{why}, so it was left unchanged"
_NO_PLACE = "it is not a path that tare makes"


def _own_place(path: str, home: str) -> PurePosixPath:
    place = PurePosixPath(path)
    plain = path.startswith("/") and str(place) == path and not {".", ".."} & set(place.parts)
    _must_be(plain, "it is not an absolute path without detours")
    if place.is_relative_to(home) and len(below := place.relative_to(home).parts) >= 1:
        _must_be(below[0] in _OF_HOME, f"it is not in a directory that tare makes in {home}")
    else:
        _must_be(any(_SCRATCH.fullmatch(part) for part in place.parts), _NO_PLACE)
    return place


def _is_marked(host: Host, path: str) -> bool:
    """Whether a directory bears its mark. One without any entry was being made by a tare that was killed."""
    kind, _, inode = host.run(["stat", "-c", "%F|%d:%i", "--", path], timeout_s=_CALL_S).text.strip().partition("|")
    if kind != "directory":
        return False
    mark = host.read(f"{path}/{FILE}")
    if mark:
        return mark.decode(errors="replace").strip() == inode
    entries = ["find", path, "-mindepth", "1", "-maxdepth", "1", "!", "-name", FILE, "-print", "-quit"]
    return not host.run(entries, timeout_s=_CALL_S).stdout


def _must_be(own: bool, why: str) -> None:  # noqa: FBT001 - what is checked
    if not own:
        raise RunFailed(_NOT_OURS.format(why=why))
