"""A Debian root file system of a few packages, made by mmdebstrap, the same on every machine and on every day.

The same but for the packages' versions: those are what the mirror has when it is built, and are recorded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.images.recipe.apt_sources import sources_of
from tare.sites import Completed, Host

BUILD_TIMEOUT_S = 1800.0
EPOCH = "0"
"""SOURCE_DATE_EPOCH: where a maintainer script writes a date, it is this one."""

_NOT_FOUND = 127
"""What env(1) ends with when there is no such program."""
_NEEDED = "apt-get install mmdebstrap"

_LEFT_OUT = (
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*",
    "/usr/share/bash-completion/*", "/usr/share/bug/*", "/var/log/*.log",
)  # fmt: skip
_KEPT = ("/usr/share/doc/*/copyright", "/usr/share/locale/locale.alias")
_MADE = 'mkdir -p "$1/usr/share/man/man1"'
"""A hook of mmdebstrap's, whose argument is the root: the maintainer scripts of JREs link to manuals there."""

NOISE = (
    # The building machine's, or other in every build; a deployment gives its own where one is needed.
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id", "var/cache/ldconfig",
    # How this image was built: mirrors, and mmdebstrap's options.
    "etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    # Older states, kept by dpkg and debconf for the next package that will never come.
    "var/lib/dpkg/status-old", "var/cache/debconf/config.dat-old", "var/cache/debconf/templates.dat-old",
)  # fmt: skip
EMPTIED = ("etc/apt/sources.list.d", "var/lib/apt/lists", "var/cache/apt", "var/log/apt")


_ANY_DATE = '--aptopt=Acquire::Check-Valid-Until "false"'
"""apt.conf(5). Of a Release file that is past its date the signature is checked all the same."""


def build_root(host: Host, suite: str, packages: Sequence[str], target: Path, *, any_date: bool = False) -> None:
    """Write the root file system to the tar `target`. Raises `EnvironmentLacks` with mmdebstrap's own words.

    `any_date`: the release may be past the date until which its Release file is valid.
    """
    if os.geteuid() != 0:
        raise EnvironmentLacks("only root can build an image from a recipe", hint="run tare with sudo")
    what = f"the root file system of Debian {suite} could not be built"
    try:
        options = (_ANY_DATE,) if any_date else ()
        argv = _argv(suite, packages, target, sources_of(host, suite), options)
        done = host.run(argv, timeout_s=BUILD_TIMEOUT_S, check=False)
    except TimedOut as error:
        raise EnvironmentLacks(f"{what}: {error}", hint="is the Debian mirror slow, or the machine?") from error
    except RunFailed as error:
        raise EnvironmentLacks(f"{what}: {error}", hint=_NEEDED) from error
    if done.code == _NOT_FOUND:
        raise EnvironmentLacks(f"{what}: {_complaints(done)}", hint=_NEEDED)
    if done.code != 0:
        hint = "apt must reach a Debian mirror, and trust it (package debian-archive-keyring)"
        raise EnvironmentLacks(f"{what}: {_complaints(done)}", hint=hint)


def _argv(
    suite: str, packages: Sequence[str], target: Path, sources: Sequence[str], options: Sequence[str]
) -> list[str]:
    """Through env(1): the environment (proxies, certificates) stays the user's, with two variables more.

    In root mode mmdebstrap mounts /proc, /sys and /dev/* of its chroot where the whole machine sees them, and
    leaves them there when it is killed. In namespaces of its own (unshare(1)) they, and all its processes, are gone
    with it, and it goes when this tare does (prctl(2), PR_SET_PDEATHSIG); its files lie beside `target`.
    """
    return [
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("env", f"SOURCE_DATE_EPOCH={EPOCH}", f"TMPDIR={target.parent}"),
        *("mmdebstrap", "--mode=root", "--variant=essential", "--format=tar"),
        f"--include={','.join(packages)}",
        *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
        *(f"--dpkgopt=path-include={path}" for path in _KEPT),
        f"--essential-hook={_MADE}",
        *("--aptopt=Acquire::Languages none", "--aptopt=Acquire::Retries 3", "--aptopt=Acquire::http::Timeout 60"),
        *options,
        suite,
        str(target),
        *sources,
    ]


def _complaints(done: Completed) -> str:
    """What it and apt call errors (`E: …`), without the line by which it says that it has failed."""
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [
        line.removeprefix("E: ") for line in lines if line.startswith("E: ") and "mmdebstrap failed" not in line
    ]
    return "; ".join(dict.fromkeys(errors)) or (lines[-1] if lines else f"mmdebstrap ended with {done.code}")
