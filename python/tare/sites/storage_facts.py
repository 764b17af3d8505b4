"""Where data would lie: file system, block device and I/O scheduler of a path.

Sources: proc_pid_mountinfo(5), Documentation/block/queue-sysfs.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from tare.deployments.mounts import covering, parse_mountinfo
from tare.sites import Host
from tare.sites.reading import answer, as_int, chosen, number, switch, table, text


def storage_facts(host: Host, path: str) -> Mapping[str, Any]:
    """Facts whose names begin with `data_`, of `path` or of its nearest parent that is there."""
    point, total, free = _space(host, path)
    mount = None if point is None else covering(parse_mountinfo(text(host, "/proc/self/mountinfo") or ""), point)
    return {
        "data_path": path,
        "data_mount_point": point,
        "data_filesystem": None if mount is None else mount.fstype,
        "data_mount_options": None if mount is None else sorted({*mount.options, *mount.super_options}),
        "data_source": None if mount is None else mount.source,
        "data_total_bytes": total,
        "data_free_bytes": free,
        **_device(host, None if mount is None else mount.device),
    }


def _space(host: Host, path: str) -> tuple[str | None, int | None, int | None]:  # mount point, total, free
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        # df follows links and finds the mount by device, which a comparison of names cannot.
        lines = answer(host, ["df", "--block-size=1", "--output=size,avail,target", "--", str(place)]).splitlines()
        if len(lines) == 2:
            size, free, point = lines[1].split(None, 2)
            return point, as_int(size), as_int(free)
    return None, None, None


def _device(host: Host, number_of_device: str | None) -> Mapping[str, Any]:
    """The queue belongs to the whole disk: for a partition, to the directory above."""
    folder = f"/sys/dev/block/{number_of_device}"
    name = table(text(host, f"{folder}/uevent"), "=").get("DEVNAME") if number_of_device else None
    queue = f"{folder}/queue" if text(host, f"{folder}/queue/scheduler") else f"{folder}/../queue"
    known = name is not None
    return {
        "data_device": name,
        "data_io_scheduler": chosen(host, f"{queue}/scheduler") if known else None,
        "data_rotational": switch(host, f"{queue}/rotational") if known else None,
        "data_write_cache": text(host, f"{queue}/write_cache") if known else None,
        "data_read_ahead_kib": number(host, f"{queue}/read_ahead_kb") if known else None,
        "data_queue_requests": number(host, f"{queue}/nr_requests") if known else None,
    }
