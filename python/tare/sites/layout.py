"""TARE_HOME: the directories of everything that is not a store, and whether they can be written."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.sites.marks import FILE

ENV = "TARE_HOME"


@dataclass(frozen=True)
class Layout:
    """Directories below one home, all on one file system so that copies can be reflinks."""

    home: Path

    @property
    def images(self) -> Path:
        """Content-addressed root file systems: images/DIGEST/rootfs and images/DIGEST/image.json."""
        return self.home / "images"

    @property
    def snapshots(self) -> Path:
        """Loaded data directories, one per image, configuration and data set."""
        return self.home / "snapshots"

    @property
    def work(self) -> Path:
        """Files of current runs: data copies, run directories."""
        return self.home / "work"

    @property
    def machines(self) -> Path:
        """Files of virtual machines that all runs share: kernel, initial file system, result of the KVM trial."""
        return self.home / "machines"

    @property
    def calibration(self) -> Path:
        """Calibrations of this machine: calibration/MACHINE/VERSIONS; never cleaned."""
        return self.home / "calibration"

    @property
    def unit_costs(self) -> Path:
        """Cost of a request on this machine: unit-costs/MACHINE/VERSIONS; never cleaned."""
        return self.home / "unit-costs"

    @property
    def knowledge(self) -> Path:
        """The user's own claims, which `tare knowledge add` writes; never cleaned."""
        return self.home / "knowledge"

    @property
    def rentals(self) -> Path:
        """Machines from a cloud: rentals/ID with keys and plan, and their ledger; never cleaned."""
        return self.home / "rentals"

    @property
    def ledger(self) -> Path:
        """The ledger of everything that was made outside a store."""
        return self.home / "ledger.sqlite"


def default_layout(environ: Mapping[str, str] = os.environ) -> Layout:
    """$TARE_HOME, else /var/lib/tare for root, else $XDG_DATA_HOME/tare (~/.local/share/tare)."""
    if given := environ.get(ENV):
        return Layout(Path(given).absolute())
    if os.geteuid() == 0:
        return Layout(Path("/var/lib/tare"))
    data = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Layout(Path(data) / "tare")


def make_directory(path: Path) -> None:
    """Make a directory of the home and what lacks above it. Only their owner may write, whatever the umask is.

    Raises `EnvironmentLacks` if the home holds what tare did not make.
    """
    if (home := default_layout().home) in path.parents:
        make_home(home)
    _make(path)


def _make(path: Path) -> None:
    for place in (*reversed(path.parents), path):
        if not place.is_dir():
            place.mkdir(mode=0o755, exist_ok=True)


def make_home(home: Path) -> None:
    """Make a home, or take an empty directory as one. Raises `EnvironmentLacks` for one with what is not tare's."""
    if not mark_home(home):
        raise EnvironmentLacks(
            f"{home} holds what tare did not make",
            hint=f"set {ENV} to an empty directory, or if only tare wrote there: stat -c %i {home} >{home / FILE}",
        )


_OF_A_FILE_SYSTEM = "lost+found"  # in an empty home with a disk of its own


def mark_home(home: Path) -> bool:
    """Make a home, or take an empty directory as one, and mark it: a sweep removes nothing from an unmarked one.

    Returns whether it is marked.
    """
    _make(home)
    # Listed before the mark is read: another tare may be making the home, and writes the mark first.
    empty = {each.name for each in home.iterdir()} <= {FILE, _OF_A_FILE_SYSTEM}
    inode, mark = f"{home.stat().st_ino}\n", home / FILE
    if empty:
        with os.fdopen(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as file:
            file.write(inode)
        return True
    return not mark.is_symlink() and mark.is_file() and mark.read_text(errors="replace").strip() == inode.strip()


_LIMIT_S = 10.0
_CLOSE = (
    'test "$(id -u)" = 0 || exit 0; for d; do test -d "$d" && ! test -L "$d" && chmod 0700 -- "$d"; done; exit 0'
)
ADVICE = f"set {ENV} to a directory that you may write to"


def close_caches(host: Host, layout: Layout) -> None:
    """Close the images and snapshots of root's tare to other users, also in a home that an earlier tare made.

    Their files may be set-uid programs of an image's author. Whoever owns the directories can still enter them.
    """
    caches = (str(layout.images), str(layout.snapshots))
    host.run(["sh", "-c", _CLOSE, "sh", *caches], timeout_s=_LIMIT_S, check=False)


def refuse_foreign(home: Path) -> None:
    """Raise `EnvironmentLacks` for an existing home that another user owns or can write to.

    Whoever can write there decides what the ledger has removed, and which processes it has ended, with the rights
    of whoever runs tare. The user who called sudo is trusted: that user could do the same by sudo.
    """
    try:
        about = home.stat()
    except OSError:
        return
    by_group = about.st_mode & stat.S_IWGRP
    by_group = by_group and about.st_gid not in {0, os.getegid(), *os.getgroups(), *_of_sudo("GID")}
    if about.st_uid not in {0, os.geteuid(), *_of_sudo("UID")}:
        why = f"belongs to user {about.st_uid}"
    elif about.st_mode & stat.S_IWOTH or by_group:
        why = "can be written by other users"
    else:
        return
    raise EnvironmentLacks(
        f"{home} {why}, who could have this tare remove any file",
        hint=f"set {ENV} to a directory of your own, or look at its ledger.sqlite, then chown and chmod it",
    )


def _of_sudo(which: Literal["UID", "GID"]) -> frozenset[int]:
    """Id of the user, or of that user's group, who called sudo; empty without sudo."""
    caller = os.environ.get(f"SUDO_{which}", "") if os.geteuid() == 0 else ""
    return frozenset({int(caller)} if caller.isdecimal() else ())


@dataclass(frozen=True)
class Home:
    """`place`: the home, or its nearest existing parent. `fault`: why nothing can be stored there."""

    path: str
    place: str
    fault: str | None = None


def home_on(host: Host, path: str) -> Home:
    """Check a home. If `path` does not exist, its nearest existing parent must be a writable directory."""
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        if _test(host, "-d", place):
            if _test(host, "-w", place):
                return Home(path, str(place))
            return Home(path, str(place), f"{path} cannot be made or written: {place} is read-only for this user")
        if _test(host, "-e", place) or _test(host, "-L", place):
            return Home(path, str(place), f"{path} cannot be made: {place} is not a directory")
    return Home(path, "/", f"{path} cannot be looked at")


def _test(host: Host, test: str, place: PurePosixPath) -> bool:
    """Result of test(1)."""
    return host.run(["test", test, str(place)], timeout_s=_LIMIT_S, check=False).code == 0
