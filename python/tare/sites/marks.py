"""Marks of what tare makes. What bears none is never removed, whatever a ledger lists.

A ledger may be damaged, foreign or made with intent; so an entry only says where to look. Marks by kind:

- containers, networks and volumes: a label with the owner; images: a name below `tare/`
- processes: `TARE_MADE_BY` in the environment of the process, or of its parent (a bare task's supervisor)
- directories: in a home whose file `.tare` holds the inode of the home, below one of its own directories; or called
  `tare-…` with a file `.tare` that holds device and inode (deployments/marked.py looks at both)
- interfaces, rules and control groups: names that only tare gives, with the owner's token

The owner is the tare or agent that the entry names: what another one made, which may still run, is left.

crates/agent/src/mark.rs has the same rules; crates/agent/tests/data/marks holds both to them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tare.errors import RunFailed
from tare.sites import Host, Process
from tare.sites.process import to_ident

MADE_BY = "TARE_MADE_BY"
"""Variable of every program that tare starts: the tare or agent that started it, as the ledger names it."""
LABEL = "org.tare-bench.owner"
"""Label of every container, network and image that tare makes; its value is the owner's ID."""
RUN_LABEL = "org.tare-bench.run"
"""Label of everything that deployments make except images: a container inherits its image's labels, whoever made
it."""
FILE = ".tare"
"""File in a directory outside a home: device and inode of that directory, as `stat -c %d:%i` prints them.

In a home: its inode alone, as device numbers may change with a boot.
"""

_CALL_S = 30.0
_OF_HOME = frozenset(
    {"calibration", "images", "live", "machines", "programs", "rentals", "snapshots", "unit-costs", "work"}
)
"""Directories of a home in which nothing but tare writes."""
_SCRATCH = re.compile(r"tare-(?:task|pod)\.[A-Za-z0-9._-]+|tare-[a-z-]+-[0-9a-f]{16}")
_LINK = re.compile(r"tar(?:[bnt]|e[cmop])([0-9a-f]{4})[0-9a-f]{5}")
"""Names of interfaces of virtual machines, NFS servers and pods; a name has at most 15 characters."""
_TAG = re.compile(r"([0-9a-f]{4})[0-9a-f]{8}")
_GROUP = re.compile(r"(?:tare/|tare\.slice/tare-)([0-9a-f]{4})_[A-Za-z0-9_.-]+(?:/.+)?")
"""Names of the groups of a run: never the group of all runs."""
_OTHERS = "another tare made it than the one that the ledger names"
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
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


def token_of(owner: Process) -> str:
    """Four digits for names: FNV-1a of the owner's ID, folded (RFC 9923)."""
    value = _FNV_OFFSET
    for byte in to_ident(owner).encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return f"{value >> 16 ^ value & 0xFFFF:04x}"


def digits_of(name: str, owner: Process, count: int) -> str:
    """Digits for the name of what `owner` makes for a task of this name: the token first."""
    token = token_of(owner)
    return token + hashlib.sha256(name.encode()).hexdigest()[: count - len(token)]


def refuse_link(name: str, owner: Process) -> None:
    """Raise `RunFailed` unless only this tare gives such names to interfaces."""
    _must_name(_LINK.fullmatch(name), owner, "it is not a name of an interface that tare made")


def refuse_rules(maker: str, tag: str, owner: Process) -> None:
    """Raise `RunFailed` unless only this tare gives such names to tables and chains of this program."""
    named = _TAG.fullmatch(tag) if maker in {"iptables", "nftables"} else None
    _must_name(named, owner, "it does not name rules that tare made")


def group_of(name: str, owner: Process) -> str:
    """Parent of all control groups of a run, relative to the root of their hierarchy."""
    return f"tare/{token_of(owner)}_{name}"


def refuse_cgroup(path: str, owner: Process) -> None:
    """Raise `RunFailed` unless the path leads to a control group of a run of this tare."""
    plain = all(part not in {"", ".", ".."} for part in path.split("/"))
    _must_name(_GROUP.fullmatch(path) if plain else None, owner, "it is not a control group of a run of tare's")


def refuse_labels(labels: Mapping[str, str], owner: Process) -> None:
    """Raise `RunFailed` unless this tare made the container, network or volume with these labels."""
    _must_be(RUN_LABEL in labels, "it has no label of tare's")
    _must_be(labels.get(LABEL) == to_ident(owner), _OTHERS)


def refuse_path(path: str, home: str) -> None:
    """Raise `RunFailed` for a path at which tare makes nothing that the ledger of this home could list."""
    place = _own_place(path, home)
    _must_be(place.is_relative_to(home) or _SCRATCH.fullmatch(place.name) is not None, _NO_PLACE)


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


def _must_name(named: re.Match[str] | None, owner: Process, why: str) -> None:
    _must_be(named is not None, why)
    _must_be(named is not None and named.group(1) == token_of(owner), _OTHERS)


def _must_be(own: bool, why: str) -> None:  # noqa: FBT001 - what is checked
    if not own:
        raise RunFailed(_NOT_OURS.format(why=why))
