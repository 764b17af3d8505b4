"""Files that a killed tare was writing by a rename go, and nothing that only looks like one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tare.deployments.sweep import sweep
from tare.errors import HostSilent, RunFailed, TimedOut
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout, make_home
from tare.sites.ledger import Kind, Made
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
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
    "machines/accelerator.json.4711-12",
    "rentals/x-1/.rental.json.01234567",
)
DRAFT = "rentals/.x-0a1b2c"
OTHERS = (
    "machines/accelerator.json",
    f"machines/kernel/initramfs-{HEX}",
    "machines/kernel/vmlinuz",
    "machines/kernel/vmlinuz-6.1-18",
    "machines/kernel/linux.0-18",
    "rentals/x-0a1b2c/login",
    "rentals/ledger.sqlite",
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
    make_home(layout.home)
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


def test_the_directory_of_a_rental_that_was_not_complete_goes_whole(tmp_path: Path) -> None:
    """It holds a login key, and was never removed."""
    keys = tuple(f"{DRAFT}/{name}" for name in ("login", "login.pub", ".rental.json.01234567"))
    layout = home_with(tmp_path, keys, age_s=2 * ALONE_S)
    assert [each.ident for each in found_in(layout)] == [str(layout.home / f"{DRAFT}/.rental.json.01234567")]
    os.utime(layout.home / DRAFT, (0, 0))
    assert [each.ident for each in found_in(layout)] == [str(layout.home / DRAFT)]
    ledger = SqliteLedger(layout.ledger)
    assert not sweep(found_in(layout), {"local": LocalHost()}, None, ledger).failed
    assert list(layout.rentals.iterdir()) == []


def found_in(layout: Layout) -> tuple[Made, ...]:
    return unfinished(LocalHost(), layout, older_than_s=ALONE_S)


@pytest.mark.parametrize("error", [TimedOut("find"), HostSilent("no process"), RunFailed("find cannot be run")])
def test_a_host_that_cannot_look_for_them_ends_nothing(error: RunFailed) -> None:
    host = FakeHost(answers={("find",): error})
    assert unfinished(host, Layout(Path("/srv/tare")), older_than_s=0.0) == ()
