"""End what runs in cgroups, remove them, and signal processes: what a host does at the end of tasks."""

from __future__ import annotations

from pathlib import Path

from tare.deployments.cgroup.hierarchy import Cgroups
from tare.errors import RunFailed
from tare.sites import Host, Process
from tare.sites.read_ahead import fetched
from tare.sites.reading import last_line

WARDEN = Path(__file__).with_name("warden.py")
_CALL_S = 30.0
_WATCHER = "conmon"
_NOT_PERMITTED, _NOT_LOADED = 4, 5
"""Exit codes of `systemctl stop` (systemctl(1), "Exit status")."""


def stop_units(host: Host, cgroups: Cgroups, path: str) -> None:
    """Stop the scope or slice `path`, and tare's slices above it, as far as they are empty.

    systemd makes the cgroup of an active slice again. A user without root may stop none: they stay, empty.
    Raises `RunFailed` if systemd does not stop one for another reason.
    """
    while path.endswith((".slice", ".scope")) and prune(host, cgroups, path):
        path, _, unit = path.rpartition("/")
        done = host.run(["systemctl", "stop", "--", unit], timeout_s=_CALL_S, check=False)
        if done.code == _NOT_PERMITTED:
            return
        if done.code not in (0, _NOT_LOADED):
            raise RunFailed(f"systemd on {host.name} does not stop {unit}: {last_line(done)}")


def clear(host: Host, cgroups: Cgroups, path: str) -> None:
    """Kill everything that runs in a cgroup, then remove it. Raises `RunFailed` if it cannot be removed."""
    if not prune(host, cgroups, path):
        warden(host, "clear", path, *(hierarchy.mount for hierarchy in cgroups.hierarchies))


def clear_watchers(host: Host, cgroups: Cgroups, parent: str) -> None:
    """End Podman's `conmon` processes if nothing else is left below a parent.

    Podman keeps the `conmon` of each exec for five minutes (`--exit-delay 300`), beside the groups of its
    containers.
    """
    places = [place for place in cgroups.directories(parent) if host.read(f"{place}/cgroup.procs") is not None]
    if not places:
        return
    argv = ["find", *places, "-mindepth", "1", "-maxdepth", "1", "-type", "d", "-printf", "%f\n"]
    names = set(host.run(argv, timeout_s=_CALL_S, check=False).text.splitlines())
    if all(_WATCHER in name for name in names):
        for name in sorted(names):
            clear(host, cgroups, f"{parent}/{name}")


def prune(host: Host, cgroups: Cgroups, path: str) -> bool:
    """Remove a cgroup and its ancestors as far as they are empty.

    Return whether the cgroup is gone from every hierarchy. The kernel refuses to remove a cgroup in use (EBUSY).
    Raises `RunFailed` for a path that leads out of the hierarchy.
    """
    parts = path.split("/")
    if "" in parts or ".." in parts:
        raise RunFailed(f"{path!r} is not a cgroup of tare")
    if not _gone(host, cgroups, path):
        upwards = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        places = [place for each in upwards for place in cgroups.directories(each)]
        host.run(["rmdir", "--", *places], timeout_s=_CALL_S, check=False)
    return _gone(host, cgroups, path)


def _gone(host: Host, cgroups: Cgroups, path: str) -> bool:
    files = [f"{place}/cgroup.procs" for place in cgroups.directories(path)]
    seen = fetched(host, files)
    return all(seen.read(file) is None for file in files)


def warden(host: Host, *words: str, timeout_s: float = _CALL_S) -> str:
    """Run warden.py on the host with these arguments and return its output."""
    argv = ["python3", "-I", "-S", "-", *words]
    return host.run(argv, timeout_s=timeout_s, stdin=WARDEN.read_bytes()).text


def send(host: Host, process: Process, name: str, *, group: bool = False) -> None:
    """Send a signal (`TERM`, `USR1`) to a process, or to the whole group that it leads, if it still runs.

    By the system call: procps 4.0.7 takes the group's negative number for an option of its `kill`.
    """
    words = (str(process.pid), str(process.started_ticks), name, *(["group"] if group else []))
    warden(host, "send", *words)
