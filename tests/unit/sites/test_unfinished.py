"""Files that a killed tare was writing by a rename go, and nothing that only looks like one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tare.sites.layout import Layout
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.unfinished import ALONE_S, BESIDE_OTHERS_S, unfinished

HEX = "0123456789abcdef"
UNFINISHED = (
    f"machines/accelerator.json.{HEX}{HEX}",
    f"machines/kernel/initramfs-{HEX}.{HEX}",
    f"machines/kernel/initramfs-{HEX}.4711-12",
    f"unit-costs/model.json.{HEX}{HEX}",
    f"unit-costs/m/v/costs.json.{HEX}{HEX}",
    f"calibration/m/v/null-1.json.{HEX}{HEX}",
    f"images/keys/{HEX}.part",
    "rentals/x-1/.rental.json.01234567",
)
OTHERS = (
    "machines/accelerator.json",
    f"machines/kernel/initramfs-{HEX}",
    "machines/kernel/vmlinuz",
    f"machines/crun/lib/libx.so.{HEX}",
    f"machines/.{HEX}",
    "unit-costs/m/v/costs.json",
    f"calibration/m/v/null-1/raw.{HEX}",
    f"images/{HEX}/rootfs/etc/x.{HEX}",
    f"images/keys/{HEX}",
    f"knowledge/claim.yaml.{HEX}",
    f"work/x.{HEX}",
    f"x.{HEX}",
)


def home_with(tmp_path: Path, names: tuple[str, ...], *, age_s: float) -> Layout:
    layout, when = Layout(tmp_path / "home"), time.time() - age_s
    for name in names:
        path = layout.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half of it")
        os.utime(path, (when, when))
    return layout


def test_old_ones_are_found_in_each_place_of_tare_s_own_and_nothing_else_is(tmp_path: Path) -> None:
    layout = home_with(tmp_path, UNFINISHED + OTHERS, age_s=2 * BESIDE_OTHERS_S)
    (layout.machines / f"link.{HEX}").symlink_to("accelerator.json")
    found = unfinished(LocalHost(), layout, older_than_s=BESIDE_OTHERS_S)
    assert {each.ident for each in found} == {str(layout.home / name) for name in UNFINISHED}
    assert {(each.kind, each.host, each.keep) for each in found} == {(Kind.PATH, "local", False)}


@pytest.mark.parametrize(("older_than_s", "count"), [(ALONE_S, len(UNFINISHED)), (BESIDE_OTHERS_S, 0)])
def test_one_that_may_still_be_written_stays(tmp_path: Path, older_than_s: float, count: int) -> None:
    layout = home_with(tmp_path, UNFINISHED, age_s=5 * ALONE_S)
    assert len(unfinished(LocalHost(), layout, older_than_s=older_than_s)) == count


def test_a_home_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert unfinished(LocalHost(), Layout(tmp_path / "none"), older_than_s=0.0) == ()
