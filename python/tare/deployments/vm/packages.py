"""Debian packages from which virtual machines are made: unpacked in tare's own directories, never installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tare.deployments.directories import remove_tree
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger

FETCH_S, CALL_S = 900.0, 60.0


def kept_version(host: Host, home: str) -> str | None:
    """Version that `unpack` has put at `home` before; `None` if there is none."""
    version = host.read(f"{home}/version")
    return None if version is None else version.decode().strip()


@dataclass(frozen=True)
class PackageSet:
    """Packages by name. `version`: version to show for the set."""

    version: str
    packages: Sequence[str]


class Wanted(Protocol):
    """Selection of files to keep from some packages."""

    @property
    def hint(self) -> str:
        """Way forward if apt offers none of the packages."""
        ...

    def choose(self) -> PackageSet:
        """Choose the packages that this apt offers."""
        ...

    def arrange(self, scratch: str) -> None:
        """Move the files to keep out of `scratch/root`, where all packages are unpacked."""
        ...


def unpack(host: Host, ledger: Ledger, home: str, wanted: Wanted) -> str:
    """Fetch packages and put the wanted files at `home` by a rename, so that `home` is always complete.

    Returns the version. Raises `EnvironmentLacks`.
    """
    scratch = f"{home}.part"
    try:
        ledger.note(Kind.PATH, scratch, host=host.name)
        remove_tree(host, scratch)
        host.run(["install", "-d", "-m", "0755", "--", scratch], timeout_s=CALL_S)
        package_set = wanted.choose()
        host.run(
            ["env", f"--chdir={scratch}", "apt-get", "-qq", "download", *package_set.packages], timeout_s=FETCH_S
        )
        for each in host.run(["find", scratch, "-name", "*.deb"], timeout_s=CALL_S).text.splitlines():
            host.run(["dpkg-deb", "-x", each, f"{scratch}/root"], timeout_s=FETCH_S)
            host.run(["rm", "-f", "--", each], timeout_s=CALL_S)
        wanted.arrange(scratch)
        host.run(["rm", "-rf", "--", f"{scratch}/root"], timeout_s=CALL_S)
        host.put(package_set.version.encode(), f"{scratch}/version")
        if kept_version(host, home) is None:
            remove_tree(host, home)  # somebody removed a part of it
        host.run(["mv", "-T", "--", scratch, home], timeout_s=CALL_S)
    except RunFailed as error:
        raise EnvironmentLacks(
            f"the packages for virtual machines cannot be prepared: {error.what}", hint=wanted.hint
        ) from error
    finally:
        remove_tree(host, scratch)
        ledger.forget(Kind.PATH, scratch, host=host.name)
    return package_set.version
