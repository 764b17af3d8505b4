"""A fake host with one server in a container, as the kernel shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.inspection.subject import Subject
from tare.sites import Completed
from tare.sites.fake import FakeHost

PID = 4242
IDENT = "ab" * 32
GROUP = f"/docker/{IDENT}"
V1 = "".join(
    f"{n} 20 0:{n} / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n"
    for n, name in enumerate(("cpu", "memory", "pids", "hugetlb"), 30)
)
V2 = "30 20 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 4096                 files
Max locked memory         65536                65536                bytes
Max processes             unlimited            unlimited            processes
"""
MOUNTS = (
    "100 1 0:50 / / rw - overlay overlay rw\n101 100 0:51 / /dev/shm rw - tmpfs shm rw,size=65536k\n"
    "102 100 8:1 /v /data rw - ext4 /dev/sda1 rw\n"
)
STATUS = (
    "Name:\tpostgres\nThreads:\t7\nVmSwap:\t0 kB\nHugetlbPages:\t0 kB\nSeccomp:\t2\n"
    "Cpus_allowed_list:\t0-3\nCapBnd:\t00000000a80425fb\n"
)
ATTRS: Mapping[str, Any] = {
    "Id": IDENT,
    "Name": "/db",
    "State": {"Pid": PID},
    "Config": {"Image": "postgres", "Env": ["POSTGRES_PASSWORD=hunter2"]},
    "HostConfig": {"Runtime": "runc", "LogConfig": {"Type": "json-file", "Config": {}}, "ReadonlyRootfs": False},
    "NetworkSettings": {
        "Ports": {"5432/tcp": [{"HostIp": "127.0.0.1", "HostPort": "5432"}]},
        "Networks": {"bridge": {"IPAddress": "172.17.0.2"}},
    },
}


def machine(*, mounts: str = V1, program: str = "postgres", command: str = "postgres", **files: str) -> FakeHost:
    """A host with the server; `files`: further content, with `__` for a slash."""
    host = FakeHost()
    own = f"/proc/{PID}"
    named = (
        f"4:cpu:{GROUP}\n3:memory:{GROUP}\n2:pids:{GROUP}\n1:hugetlb:{GROUP}\n" if mounts == V1 else f"0::{GROUP}\n"
    )
    content = {
        "/proc/self/mountinfo": mounts,
        f"{own}/stat": f"{PID} ({program}) S 1",
        f"{own}/comm": program,
        f"{own}/cmdline": command.replace(" ", "\0"),
        f"{own}/cgroup": named,
        f"{own}/limits": LIMITS,
        f"{own}/status": STATUS,
        f"{own}/mountinfo": MOUNTS,
        f"{own}/oom_score_adj": "0",
        f"{own}/maps": "7f00 r-xp /usr/lib/x86_64-linux-gnu/libc.so.6\n",
        f"{own}/environ": "POSTGRES_PASSWORD=hunter2\0PATH=/bin",
        f"{own}/root/etc/hosts": "127.0.0.1 localhost\n",
        f"{own}/root/etc/resolv.conf": "nameserver 10.0.0.1\noptions ndots:5\n",
        f"{own}/net/netstat": "TcpExt: ListenOverflows ListenDrops\nTcpExt: 3 4\n",
        f"{own}/net/tcp": "  sl  local_address\n",
        f"{own}/net/tcp6": "  sl  local_address\n",
        "/proc/net/tcp": "",
        "/proc/sys/net/core/somaxconn": "4096",
        **{name.replace("__", "/"): value for name, value in files.items()},
    }
    host.files |= {name: value.encode() for name, value in content.items()}
    answers = {
        ("readlink", f"{own}/cwd"): "/data/db",
        ("readlink", f"{own}/exe"): "/usr/bin/postgres",
        ("pgrep", "-l"): "77 docker-proxy\n",
    }
    host.answers = {argv: Completed(argv, 0, output.encode()) for argv, output in answers.items()}
    host.linked = {f"{own}/ns/net": "net:[2]", "/proc/1/ns/net": "net:[1]"}
    host.files["/proc/77/stat"] = b"77 (docker-proxy) S " + b"0 " * 40
    host.files["/proc/77/cmdline"] = b"docker-proxy\0-host-ip\x00127.0.0.1\0-container-ip\x00172.17.0.2\0"
    return host


def subject(database: str = "postgresql", **changes: Any) -> Subject:
    """The server in its container."""
    given = {
        "name": "db",
        "pid": PID,
        "placed": "container",
        "engine": "docker",
        "database": database,
        "attrs": ATTRS,
    }
    return Subject(**{**given, **changes})
