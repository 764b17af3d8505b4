"""What storages with a mount share: make a directory, mount there, and unmount."""

from __future__ import annotations

from collections.abc import Sequence

from tare.deployments.directories import remove_tree
from tare.errors import EnvironmentLacks
from tare.sites import Host

CALL_S = 60.0
_DATA = "data"
_SPARE_BYTES = 256 << 20
_GROWTH = 2
"""Growth of a database's data while it is measured: logs, dirty pages, new rows."""


def data_below(home: str) -> str:
    """Directory for the data below a mount; a file system's root may hold lost+found, which no database accepts."""
    return f"{home}/{_DATA}"


def size_for(data_bytes: int) -> int:
    """Bytes to reserve for a place if the study names no size."""
    return _GROWTH * data_bytes + _SPARE_BYTES


def mount(host: Host, home: str, argv: Sequence[str]) -> None:
    """Make `home` and mount there. Raises `EnvironmentLacks` with the tool's message if that fails."""
    host.run(["install", "-d", "-m", "0755", "--", home], timeout_s=CALL_S)
    done = host.run(["mount", *argv, "--", home], timeout_s=CALL_S, check=False)
    if done.code != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentLacks(
            f"cannot mount {' '.join(argv)}: {words[-1] if words else f'exit code {done.code}'}",
            hint="mounting needs root and a kernel that has the file system, see /proc/filesystems",
        )


def unmount(host: Host, home: str) -> None:
    """Remove the directory and everything that is mounted there."""
    remove_tree(host, home)
