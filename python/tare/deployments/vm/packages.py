"""Debian packages that virtual machines are made with: unpacked beside what tare keeps, never installed."""

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
    """What `unpack` has put there before."""
    version = host.read(f"{home}/version")
    return None if version is None else version.decode().strip()


@dataclass(frozen=True)
class PackageSet:
    """`version`: what is shown of it. `packages`: by name."""

    version: str
    packages: Sequence[str]


class Wanted(Protocol):
    """What is to be had of some packages."""

    @property
    def hint(self) -> str:
        """What to do where apt has none of them."""
        ...

    def choose(self) -> PackageSet:
        """Those that this apt offers."""
        ...

    def arrange(self, scratch: str) -> None:
        """Move what is to be kept out of `root` in this directory, where all of them are unpacked."""
        ...


def unpack(host: Host, ledger: Ledger, home: str, wanted: Wanted) -> str:
    """Fetch packages and put what is wanted of them at `home`, by a rename, so that what stands there is whole.

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
        for each in host.run(["find", scratch, "-name", "*.deb"], timeout_s=CALL_S).text.split():
            host.run(["dpkg-deb", "-x", each, f"{scratch}/root"], timeout_s=FETCH_S)
            host.run(["rm", "-f", "--", each], timeout_s=CALL_S)
        wanted.arrange(scratch)
        host.run(["rm", "-rf", "--", f"{scratch}/root"], timeout_s=CALL_S)
        host.put(package_set.version.encode(), f"{scratch}/version")
        host.run(["mv", "-T", "--", scratch, home], timeout_s=CALL_S)
    except RunFailed as error:
        raise EnvironmentLacks(f"nothing to make virtual machines from: {error.what}", hint=wanted.hint) from error
    finally:
        remove_tree(host, scratch)
        ledger.forget(Kind.PATH, scratch, host=host.name)
    return package_set.version
