"""The runtime of containers in virtual machines: Debian's crun with its libraries, and a seccomp profile."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments.vm.cpio import Entry, directory, program
from tare.deployments.vm.packages import CALL_S, PackageSet, kept_version, unpack
from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger

PACKAGE = "crun"
PROFILES = "golang-github-containers-common"
"""Package with the seccomp profile of Podman and Buildah, which the authors of Docker's profile keep identical to
it."""
_LIBRARIES = "lib/x86_64-linux-gnu"
"""Where Debian's loader looks for libraries without a cache."""
_LOADER = "ld-linux-x86-64.so.2"
_PROFILE = "usr/share/containers/seccomp.json"
_INSTALLED = re.compile(r"^Inst (\S+) \((\S+)", re.MULTILINE)
_FOUND = re.compile(r"=> (.+) \(0x")
_HINT = "apt must be set up for Debian, whose crun runs containers in virtual machines: apt-get update"


@dataclass(frozen=True)
class Runtime:
    """`home`: directory of the runtime's files on the host. `version`: version of the package."""

    home: str
    version: str


def runtime_of(host: Host, ledger: Ledger, layout: Layout) -> Runtime:
    """Runtime that was unpacked before, or else fetched now. Raises `EnvironmentLacks` if apt offers none."""
    home = f"{layout.machines}/crun"
    return Runtime(home, kept_version(host, home) or unpack(host, ledger, home, _Packages(host)))


def profile_of(host: Host, runtime: Runtime) -> Mapping[str, Any]:
    """The seccomp profile, in the format of containers-common."""
    raw = host.read(f"{runtime.home}/seccomp.json")
    if raw is None:
        raise EnvironmentLacks(f"{runtime.home} has no seccomp profile", hint=f"remove {runtime.home}")
    profile: Mapping[str, Any] = json.loads(raw)
    return profile


def entries(host: Host, runtime: Runtime) -> tuple[Entry, ...]:
    """Entries of the runtime for an initial RAM file system."""
    listed = host.run(["find", f"{runtime.home}/lib", "-type", "f"], timeout_s=CALL_S).text.splitlines()
    mode = stat.S_IFREG | 0o755
    libraries = [
        Entry(f"{_LIBRARIES}/{path.rpartition('/')[2]}", mode, host.read(path) or b"") for path in sorted(listed)
    ]
    loader = next((each for each in libraries if each.name.endswith(_LOADER)), None)
    if loader is None:
        raise EnvironmentLacks(f"{runtime.home} has no {_LOADER}", hint=f"remove {runtime.home}")
    return (
        *(directory(name) for name in ("lib", _LIBRARIES, "lib64", "run", "tmp")),
        *libraries,
        Entry(f"lib64/{_LOADER}", mode, loader.content),
        program("bin/crun", host.read(f"{runtime.home}/crun") or b""),
    )


def simulated(text: str) -> dict[str, str]:
    """Package → version of everything that `apt-get --simulate install` would install."""
    return {match[1]: match[2] for match in _INSTALLED.finditer(text)}


@dataclass(frozen=True)
class _Packages:
    """crun, the shared libraries that its loader needs, and the seccomp profile."""

    host: Host
    hint: str = _HINT

    def choose(self) -> PackageSet:
        """Choose as for a machine with nothing installed: the guest does not have this host's packages."""
        nothing = ["-o", "Dir::State::status=/dev/null", "--no-install-recommends"]
        words = ["env", "LC_ALL=C", "apt-get", "--simulate", *nothing, "install", PACKAGE]
        versions = simulated(self.host.run(words, timeout_s=CALL_S).text)
        if PACKAGE not in versions:
            raise EnvironmentLacks(f"apt knows no package {PACKAGE}", hint=_HINT)
        return PackageSet(versions[PACKAGE], (*versions, PROFILES))

    def arrange(self, scratch: str) -> None:
        """Move the files to `crun`, `lib` and `seccomp.json`."""
        run, root = self.host.run, f"{scratch}/root"
        loader = run(["find", root, "-name", _LOADER, "-type", "f"], timeout_s=CALL_S).text.splitlines()[0]
        path = f"{root}/{_LIBRARIES}:{root}/usr/{_LIBRARIES}"
        listing = [loader, "--library-path", path, "--list", f"{root}/usr/bin/crun"]
        needed = _FOUND.findall(run(listing, timeout_s=CALL_S).text)
        run(["install", "-d", "-m", "0755", "--", f"{scratch}/lib"], timeout_s=CALL_S)
        run(["cp", "-L", "--", loader, *needed, f"{scratch}/lib"], timeout_s=CALL_S)
        run(["mv", "--", f"{root}/usr/bin/crun", f"{scratch}/crun"], timeout_s=CALL_S)
        run(["mv", "--", f"{root}/{_PROFILE}", f"{scratch}/seccomp.json"], timeout_s=CALL_S)
