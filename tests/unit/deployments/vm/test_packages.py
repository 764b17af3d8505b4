"""Files of packages that virtual machines need: they stand complete, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.deployments.vm.packages import PackageSet, unpack
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger


class Files:
    """A file of a package; apt downloads none."""

    hint = "there is none"

    def choose(self) -> PackageSet:
        return PackageSet("1.2", ())

    def arrange(self, scratch: str) -> None:
        Path(scratch, "vmlinuz").write_text("new")


def test_what_is_left_of_a_home_without_its_version_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "apt-get").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    home = tmp_path / "kernel"
    (home / "modules").mkdir(parents=True)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    assert unpack(LocalHost(), ledger, str(home), Files()) == "1.2"
    assert sorted(path.name for path in home.iterdir()) == ["version", "vmlinuz"]
    assert ledger.entries() == ()


class Package:
    """A package that holds one file."""

    hint = "there is none"

    def choose(self) -> PackageSet:
        return PackageSet("1.2", ("kernel",))

    def arrange(self, scratch: str) -> None:
        Path(scratch, "root", "vmlinuz").rename(Path(scratch, "vmlinuz"))


def test_a_home_may_have_a_blank_in_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "apt-get": 'touch "$3.deb"',
        "dpkg-deb": '[ -f "$2" ] && mkdir -p "$3" && touch "$3/vmlinuz"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    home = tmp_path / "my home" / "kernel"
    home.parent.mkdir()
    unpack(LocalHost(), SqliteLedger(tmp_path / "ledger.sqlite"), str(home), Package())
    assert sorted(path.name for path in home.iterdir()) == ["version", "vmlinuz"]
