"""OCI configuration of a container in a virtual machine, as Docker gives it to the same task. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.deployments import Limits, Task
from tare.deployments.defaults import SCRATCH, environment, shm_bytes
from tare.deployments.rlimits import UNLIMITED, Rlimit

_ARCHITECTURE, _SECCOMP_NAME = "amd64", "SCMP_ARCH_X86_64"


def seccomp_of(profile: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> dict[str, Any]:
    """`linux.seccomp` of the OCI runtime specification: the profile's rules for these capabilities on x86-64.

    `kernel`: kernel version; a rule may require a minimum version.
    """
    seccomp = {
        "defaultAction": profile["defaultAction"],
        "architectures": _architectures(profile),
        "syscalls": [
            _rule(rule)
            for rule in profile["syscalls"]
            if _holds(rule.get("includes") or {}, capabilities, kernel)
            and not _excluded(rule.get("excludes") or {}, capabilities, kernel)
        ],
    }
    if (errno := profile.get("defaultErrnoRet")) is not None:
        seccomp["defaultErrnoRet"] = errno
    return seccomp


def _architectures(profile: Mapping[str, Any]) -> list[str]:
    own = [each for each in profile["archMap"] if each["architecture"] == _SECCOMP_NAME]
    return [_SECCOMP_NAME, *(other for each in own for other in each["subArchitectures"])]


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"names": rule["names"], "action": rule["action"]}
    if rule.get("args"):
        kept["args"] = rule["args"]
    if rule.get("errnoRet") is not None:
        kept["errnoRet"] = rule["errnoRet"]
    return kept


def _holds(asked: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> bool:
    """Whether all conditions of a rule hold; a condition that is not named always does."""
    return (
        set(asked.get("caps") or ()) <= capabilities
        and (not asked.get("arches") or _ARCHITECTURE in asked["arches"])
        and (not asked.get("minKernel") or kernel >= _version(asked["minKernel"]))
    )


def _excluded(asked: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> bool:
    """Whether any exclusion of a rule applies."""
    return (
        bool(set(asked.get("caps") or ()) & capabilities)
        or _ARCHITECTURE in (asked.get("arches") or ())
        or bool(asked.get("minKernel") and kernel >= _version(asked["minKernel"]))
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


CAPABILITIES = tuple(
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
"""Docker's default capabilities (moby, oci/caps/defaults.go)."""
NAMESPACES = ("cgroup", "ipc", "mount", "pid", "uts")
"""The container's own namespaces. The network is the machine's, as with `--network host`."""
CGROUP = "/task/container"
"""Control group of the container, below the one in which the machine accounts for its task."""
_INFINITY = (1 << 64) - 1
_MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"),
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_DEVICES = (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9))
_TTY = ((5, 0), (5, 2), (136, None))
_QUIET = ("nosuid", "noexec", "nodev")


def oci_config(
    task: Task,
    disks: Mapping[str, str],
    names: Mapping[str, str],
    limits: Mapping[str, Rlimit],
    seccomp: Mapping[str, Any],
) -> dict[str, Any]:
    """Configuration without user IDs and home, which the machine looks up in the image's own /etc/passwd.

    `disks`: target of a bind → mount point of its disk in the machine. `names`: path in the container → file of the
    machine that is mounted there.
    """
    return {
        "ociVersion": "1.0.2",
        "hostname": task.name,
        "process": _process(task, limits),
        "root": {"path": "rootfs", "readonly": not task.layers},
        "mounts": [
            *own_mounts(task.limits),
            *_task_binds(task, disks),
            *(bind_mount(place, own, "ro") for place, own in names.items()),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in NAMESPACES],
            "cgroupsPath": CGROUP,
            "resources": _resources(task),
            "maskedPaths": list(_MASKED),
            "readonlyPaths": list(_READ_ONLY),
            "seccomp": dict(seccomp),
        },
    }


def _process(task: Task, limits: Mapping[str, Rlimit]) -> dict[str, Any]:
    env = {"HOSTNAME": task.name, **environment(task)}
    return {
        "terminal": False,
        "args": list(task.argv),
        "env": [f"{name}={value}" for name, value in env.items()],
        "cwd": task.workdir,
        "noNewPrivileges": False,
        "capabilities": {kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted")},
        "rlimits": oci_rlimits(limits),
    }


def oci_rlimits(limits: Mapping[str, Rlimit]) -> list[dict[str, Any]]:
    """Limits in the form of `process.rlimits`."""
    return [
        {"type": f"RLIMIT_{name.upper()}", "soft": _bound(each.soft), "hard": _bound(each.hard)}
        for name, each in limits.items()
    ]


def _bound(value: int) -> int:
    return _INFINITY if value == UNLIMITED else value


def _resources(task: Task) -> dict[str, Any]:
    """Resource limits.

    QEMU's process bears the CPU limits; as everywhere, no swap, and processes without a limit.
    """
    resources: dict[str, Any] = {"pids": {"limit": -1}, "devices": _device_rules()}
    if (memory := task.limits.memory_bytes) is not None:
        resources["memory"] = {"limit": memory, "swap": memory}
    return resources


def _device_rules() -> list[dict[str, Any]]:
    """Device rules as runc's defaults: any node may be made, and only harmless devices used."""
    rules: list[dict[str, Any]] = [{"allow": False, "access": "rwm"}]
    rules += [{"allow": True, "type": kind, "access": "m"} for kind in ("c", "b")]
    for major, minor in (*((1, minor) for _, minor in _DEVICES), *_TTY):
        rule = {"allow": True, "type": "c", "major": major, "access": "rwm"}
        rules.append(rule if minor is None else {**rule, "minor": minor})
    return rules


def own_mounts(limits: Limits) -> list[dict[str, Any]]:
    """Mounts that every container has: /proc, /dev, /sys and the scratch directories."""
    shm = f"size={shm_bytes(limits)}"
    return [
        _mount("/proc", "proc", *_QUIET),
        _mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
        _mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
        _mount("/dev/shm", "tmpfs", *_QUIET, "mode=1777", shm),  # noqa: S108 - the container's own
        _mount("/dev/mqueue", "mqueue", *_QUIET),
        _mount("/sys", "sysfs", *_QUIET, "ro"),
        _mount("/sys/fs/cgroup", "cgroup", *_QUIET, "relatime", "ro"),
        *(_mount(each.target, "tmpfs", "rw", "nosuid", "nodev", f"mode={each.mode}") for each in SCRATCH),
    ]


def _task_binds(task: Task, disks: Mapping[str, str]) -> list[dict[str, Any]]:
    """The task's binds; they come after the scratch directories, since some lie below one of them."""
    return [bind_mount(bind.target, disks[bind.target], "ro" if bind.read_only else "rw") for bind in task.binds]


def _mount(target: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


def bind_mount(target: str, source: str, access: str) -> dict[str, Any]:
    """Mount of a directory or file of the host. `access`: `ro` or `rw`."""
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", "rprivate", access]}
