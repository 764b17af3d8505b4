"""What storages have in common that mount something: make and mount."""

from __future__ import annotations

from collections.abc import Sequence

from tare.deployments.directories import remove_tree
from tare.errors import EnvironmentLacks
from tare.sites import Host

CALL_S = 60.0
_DATA = "data"
_SPARE_BYTES = 256 << 20
_GROWTH = 2
"""Data of a database grow while it is measured: logs, dirty pages, new rows."""


def data_below(home: str) -> str:
    """Below the mount, for a file system's own root may hold lost+found, which no database wants in its data."""
    return f"{home}/{_DATA}"


def size_for(data_bytes: int) -> int:
    """Bytes that a place of its own should have where the study names no size."""
    return _GROWTH * data_bytes + _SPARE_BYTES


def mount(host: Host, home: str, argv: Sequence[str]) -> None:
    """Make `home` and mount there. `EnvironmentLacks` with the tool's words where it cannot be done here."""
    host.run(["install", "-d", "-m", "0755", "--", home], timeout_s=CALL_S)
    done = host.run(["mount", *argv, "--", home], timeout_s=CALL_S, check=False)
    if done.code != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentLacks(
            f"cannot mount {' '.join(argv)}: {words[-1] if words else f'exit code {done.code}'}",
            hint="mounting needs root and a kernel that has the file system, see /proc/filesystems",
        )


def unmount(host: Host, home: str) -> None:
    """Take away the directory and all that is mounted there."""
    remove_tree(host, home)
