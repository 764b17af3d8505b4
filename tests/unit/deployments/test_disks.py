"""What limits each kernel tells to be in force on a disk."""

from __future__ import annotations

import pytest

from tare.deployments.disks import iops_in_force


@pytest.mark.parametrize(
    ("text", "iops"),
    [
        ("254:0 500\n8:16 300", 300),
        ("254:0 rbps=max wbps=1048576 riops=500 wiops=400", 400),
        ("254:0 rbps=1048576 wbps=max riops=max wiops=max", None),
        ("", None),
    ],
)
def test_the_lowest_limit_of_any_disk_counts(text: str, iops: int | None) -> None:
    assert iops_in_force(text) == iops
