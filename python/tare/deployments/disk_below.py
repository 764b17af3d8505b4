"""On what a directory of the host lies; two that are to be compared must lie on one disk."""

from __future__ import annotations

from tare.deployments.mountinfo import Mount, covering, parse_mountinfo
from tare.errors import EnvironmentLacks
from tare.sites import Host

_CALL_S = 60.0


def lying_under(host: Host, path: str) -> Mount:
    """The mount on which a directory of the host lies."""
    text = (host.read("/proc/self/mountinfo") or b"").decode(errors="replace")
    real = host.run(["realpath", "--", path], timeout_s=_CALL_S).text.rstrip("\n")
    found = covering(parse_mountinfo(text), real)
    if found is None:
        raise EnvironmentLacks(f"the kernel does not say on which file system {path} lies")
    return found


def must_share_disk(host: Host, engines: str, ours: str) -> None:
    """Raise `EnvironmentLacks` where what the engine keeps is on another disk than tare's own directories."""
    theirs, own = lying_under(host, engines), lying_under(host, ours)
    # Subvolumes of one btrfs have a device number each, and their device in common.
    if theirs.device == own.device or (theirs.source == own.source and own.source.startswith("/dev/")):
        return
    there, here = (f"{each.fstype} on {each.source} ({each.device})" for each in (theirs, own))
    raise EnvironmentLacks(
        f"the engine's {engines} lies on {there}, tare's {ours} on {here}: arms would differ by their disk",
        hint="set TARE_HOME to a directory of the engine's file system, or move the engine's data (`data-root`)",
    )
