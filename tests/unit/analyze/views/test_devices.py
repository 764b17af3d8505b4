"""Which block devices are shown, and which may be added up."""

from __future__ import annotations

import polars as pl
import pytest
from tests.unit.analyze.views.traces import trace

from tare.analyze.views.compute import samples
from tare.analyze.views.formulas import lowest, whole
from tare.analyze.views.readings import disks
from tare.analyze.views.why import why
from tare.store.trace import Trace


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("sda", "sda1", "sda10", "sdb", "sdaa"), {"sda", "sdb", "sdaa"}),
        (("nvme0n1", "nvme0n1p1", "nvme0n10", "mmcblk0", "mmcblk0p2"), {"nvme0n1", "nvme0n10", "mmcblk0"}),
        (("dm-1", "dm-10", "loop0", "loop0p1"), {"dm-1", "dm-10", "loop0"}),
        (("xvda1",), {"xvda1"}),
        ((), set()),
    ],
)
def test_partitions_are_left_out_beside_their_device(names: tuple[str, ...], shown: set[str]) -> None:
    assert whole(names) == shown


def test_what_stands_on_other_devices_is_not_added_to_them() -> None:
    assert lowest(("sda", "sda1", "dm-0", "md127", "loop3", "zram0", "mda")) == {"sda", "mda"}
    assert lowest(("dm-0", "dm-1")) == {"dm-0", "dm-1"}, "in a container that sees no other"


def layered() -> Trace:
    """The disk `vda` with a partition and a volume, each of which counts the same bytes."""
    of = trace()
    disk = of.tables["disk"]
    more = [
        disk.with_columns(pl.lit(name).alias("name"), pl.lit(n).cast(disk["target"].dtype).alias("target"))
        for n, name in ((900, "vda1"), (901, "dm-0"))
    ]
    return Trace(of.header, of.quanta, True, {**of.tables, "disk": pl.concat([disk, *more])})


def test_bytes_that_pass_several_devices_are_told_once() -> None:
    assert set(disks(layered())["subject"]) == {"vda", "dm-0"}
    shown = samples(layered()).filter(tool="iostat", quantity="written_kib")
    assert set(shown["subject"]) == {"vda", "dm-0"}
    assert any("The host's devices wrote 40.0 MiB" in sentence for sentence in why(layered(), 1.0))
