from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.calibrate.injections import ReadLimit, io_mount, whole_disk
from tare.deployments.cgroup.hierarchy import parse_cgroups
from tare.errors import EnvironmentLacks
from tare.record.observation import Observation
from tare.sites.fake import FakeHost

DATA = Path(__file__).parents[2] / "data"
ROOT = "25 1 {device} / / rw,relatime shared:1 - ext4 /dev/x rw\n"
SYS = "/sys/dev/block"


def host_on(device: str, **files: bytes) -> FakeHost:
    host = FakeHost()
    host.files["/proc/self/mountinfo"] = ROOT.format(device=device).encode()
    host.files.update(files)
    return host


def test_the_rule_is_for_the_disk_and_not_for_its_partition() -> None:
    host = host_on("8:1")
    host.files |= {f"{SYS}/8:1/partition": b"1\n", f"{SYS}/8:1/../dev": b"8:0\n", f"{SYS}/8:0/dev": b"8:0\n"}
    assert whole_disk(host, "/var/lib/tare") == "8:0"


def test_a_disk_without_partitions_is_taken_itself() -> None:
    host = host_on("254:0")
    host.files[f"{SYS}/254:0/dev"] = b"254:0\n"
    assert whole_disk(host, "/var/lib/tare") == "254:0"


def test_a_file_system_without_a_disk_is_refused() -> None:
    with pytest.raises(EnvironmentLacks, match="not on a block device"):
        whole_disk(host_on("0:38"), "/var/lib/tare")


def test_the_hierarchy_that_limits_io_is_found_in_both_versions() -> None:
    hybrid = parse_cgroups((DATA / "mountinfo-cgroup-hybrid.txt").read_text())
    assert io_mount(hybrid) == hybrid.mount_of("blkio")
    unified = parse_cgroups("30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n")
    assert io_mount(unified) == "/sys/fs/cgroup"


def test_its_own_limit_is_no_limit_of_the_study_s_and_any_other_is_told() -> None:
    nowhere: Any = None
    limit = ReadLimit(FakeHost(), nowhere, reads_per_s=900)
    seen = Observation({}, None, None, None, None, {}, None, {}, {}, None, None, None, disk_iops=900)
    assert limit.without(seen) == replace(seen, disk_iops=None)
    other = replace(seen, disk_iops=500)
    assert limit.without(other) == other
