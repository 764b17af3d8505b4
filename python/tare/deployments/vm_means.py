"""Whether a host has the programs that virtual machines take; whether KVM runs a guest is another question."""

from __future__ import annotations

from tare.deployments.vm_accelerator import qemu_version
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.binaries import GUEST, find

_CALL_S = 30.0
_DISK_TOOLS = ("mke2fs", "debugfs")


def why_no_machine(host: Host) -> str | None:
    """Why none can be started, with what to do about it; `None` where nothing is known against it."""
    try:
        qemu_version(host)
    except EnvironmentLacks as error:
        return str(error)
    for program in _DISK_TOOLS:
        try:
            host.run([program, "-V"], timeout_s=_CALL_S, check=False)
        except RunFailed as error:
            return f"their disks are made by {program}: {error.what} (apt-get install e2fsprogs)"
    return None if find(host, GUEST) else f"tare-guest, which every machine runs, is not here; {GUEST.hint}"
