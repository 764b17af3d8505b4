"""A Debian root file system of a few packages, made by mmdebstrap, the same on every machine and every day.

The same except for versions of packages, which are those of the mirror at build time and are recorded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.deployments.directories import USER_NAMESPACE
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.images.bases import Bases
from tare.images.recipe.apt_sources import sources_of
from tare.sites import Completed, Host

BUILD_TIMEOUT_S = 1800.0
EPOCH = "0"
"""SOURCE_DATE_EPOCH: the date that maintainer scripts write."""

_NOT_FOUND = 127
"""Exit code of env(1) if there is no such program."""
_NEEDED = "apt-get install mmdebstrap"
_TRY_S = 20.0

_LEFT_OUT = tuple(
    f"/usr/share/{name}" for name in ("doc", "man", "info", "locale", "lintian", "bash-completion", "bug")
)
_FILTER = (
    *(f"path-exclude={folder}/*" for folder in _LEFT_OUT),
    "path-exclude=/var/log/*.log",
    "path-include=/usr/share/doc/*/copyright",
    "path-include=/usr/share/locale/locale.alias",
)
"""Lines of dpkg.cfg(5). As options of mmdebstrap (`--dpkgopt`), they would start Python for each essential
package."""
_LEAVE_OUT = f"""set -eu
for folder in {" ".join(_LEFT_OUT)}; do rm -rf "$1$folder/"*; done
for line in {" ".join(f"'{line}'" for line in _FILTER)}; do
    echo "$line"
done >"$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
"""
"""A hook of mmdebstrap; its argument is the root. The essential packages are unpacked, and dpkg is about to install
them, which restores the files that are kept."""
_MADE = 'mkdir -p "$1/usr/share/man/man1"'
"""A hook after dpkg: the maintainer scripts of JREs make links to manuals in this directory."""
_ESSENTIALS = (f"--extract-hook={_LEAVE_OUT}", f"--essential-hook={_MADE}")
_OPTIONS = (
    *("--aptopt=Acquire::Languages none", "--aptopt=Acquire::Retries 3", "--aptopt=Acquire::http::Timeout 60"),
)

_BASE_FORMAT = 2
_UNUSABLE = "E: the base cannot be used"
_FUNCTIONS = f"""set -eu
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
unusable() {{ echo "{_UNUSABLE}: $1" >&2; exit 1; }}
select_essential() {{
    suite="?or(?archive(^$TARE_SUITE\\$),?codename(^$TARE_SUITE\\$))"
    chosen=$(apt-get --simulate -o Dir::State::Status=/dev/null install \\
        "?narrow($suite,?architecture($(dpkg --print-architecture)),?essential)")
    echo "$chosen" | awk '$1 == "Inst" {{ print $2, $3 }}' | sort >"$1"
    test -s "$1"
}}
"""
"""`select_essential`: versions that mmdebstrap would install as essential in an empty root, by its own pattern.

Hooks use the machine's own apt unless they take mmdebstrap's configuration.
"""
_RECORD_ESSENTIAL = """
select_essential "$1/essential-in-base"
"""
_FROM_BASE = """
tar --extract --file "$TARE_BASE" --directory "$1" --numeric-owner --xattrs --xattrs-include='*' \\
    --exclude='./dev/*' --exclude='./tmp/*' --exclude=./etc/hostname --exclude=./etc/resolv.conf ||
    unusable "tar cannot read it"
cd "$1/var/lib/apt/lists"
sha256sum ./*Release >"$1/releases-in-base" || unusable "it has no lists of packages"
mkdir -p auxfiles
apt-get update --quiet --error-on=any
sha256sum ./*Release >"$1/releases-now"
if ! cmp -s "$1/releases-in-base" "$1/releases-now"; then
    select_essential "$1/essential-now"
    cmp -s "$1/essential-in-base" "$1/essential-now" || unusable "other versions are essential now"
fi
rm -f "$1/releases-in-base" "$1/releases-now" "$1/essential-in-base" "$1/essential-now"
"""
"""The base contains the lists of packages, so apt fetches only what has changed since."""

NOISE = (
    # Specific to the build machine or to each build; a deployment provides its own if needed.
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id", "var/cache/ldconfig",
    # How this image was built: mirrors, and mmdebstrap's options.
    "etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    # Older states that dpkg and debconf keep for later packages, of which there will be none.
    "var/lib/dpkg/status-old", "var/cache/debconf/config.dat-old", "var/cache/debconf/templates.dat-old",
)  # fmt: skip
EMPTIED = ("etc/apt/sources.list.d", "var/lib/apt/lists", "var/cache/apt", "var/log/apt")


_ANY_DATE = '--aptopt=Acquire::Check-Valid-Until "false"'
"""apt.conf(5). The signature of an expired Release file is still checked."""


def build_root(  # noqa: PLR0913 - the parts of a root, each by name
    host: Host,
    suite: str,
    packages: Sequence[str],
    target: Path,
    *,
    any_date: bool = False,
    bases: Bases | None = None,
) -> None:
    """Write the root file system to the tar `target`. Raises `EnvironmentLacks` with mmdebstrap's own message.

    `any_date`: accept an expired Release file. With `bases`, the essential packages come from a root that other
    builds share, which is made if there is none or only an older one; without, they are installed anew. The result
    is the same.
    """
    if (why := why_no_build(host)) is not None:
        raise EnvironmentLacks(f"the root file system of Debian {suite} cannot be built: {why}")
    release = _Release(suite, sources_of(host, suite), (_ANY_DATE,) if any_date else ())
    if bases is None:
        _must_be_built(_mmdebstrap(host, release, target, (*_ESSENTIALS, _include(packages))), suite)
        return
    base = bases.base(release.key)
    with bases.builder(base.name):
        if not base.exists():
            _make_base(host, release, target, bases)
    done = _from_base(host, release, packages, target, base)
    if done.code != 0 and any(line.startswith(_UNUSABLE) for line in _lines(done)):
        with bases.builder(base.name):
            _make_base(host, release, target, bases)
        done = _from_base(host, release, packages, target, base)
    _must_be_built(done, suite)


def why_no_build(host: Host) -> str | None:
    """Why this user cannot build a Debian root here, with a way forward; `None` if no obstacle is known.

    A user other than root needs a user namespace with a range of subordinate IDs (user_namespaces(7), subuid(5)).
    """
    if os.geteuid() == 0:
        return None
    done = host.run([*USER_NAMESPACE, "true"], timeout_s=_TRY_S, check=False)
    if done.code == 0:
        return None
    said = _lines(done)
    reason = said[-1] if said else f"unshare ended with {done.code}"
    return (
        f"without root it takes a user namespace with a range of user ids, and there is none here ({reason}): as "
        "root, apt-get install uidmap; usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"
    )


@dataclass(frozen=True)
class _Release:
    """Sources of a Debian release: its code name, lines of sources.list(5), and options of mmdebstrap."""

    suite: str
    sources: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def key(self) -> str:
        """Digest of everything that a base depends on, except for the versions of its packages."""
        parts = (str(_BASE_FORMAT), os.uname().machine, self.suite, *self.sources, *self.options, *_ESSENTIALS)
        return hashlib.sha256("\0".join((*parts, *_OPTIONS)).encode()).hexdigest()


def _make_base(host: Host, release: _Release, target: Path, bases: Bases) -> None:
    made = target.with_name(f"{target.name}-base")
    options = (*_ESSENTIALS, f"--customize-hook={_FUNCTIONS}{_RECORD_ESSENTIAL}", "--skip=cleanup")
    _must_be_built(_mmdebstrap(host, release, made, options), release.suite)
    bases.keep_base(release.key, made)


def _from_base(host: Host, release: _Release, packages: Sequence[str], target: Path, base: Path) -> Completed:
    options = (f"--setup-hook={_FUNCTIONS}{_FROM_BASE}", _include(packages))
    return _mmdebstrap(host, release, target, options, base=base)


def _include(packages: Sequence[str]) -> str:
    return f"--include={','.join(packages)}"


def _mmdebstrap(
    host: Host, release: _Release, target: Path, options: Sequence[str], *, base: Path | None = None
) -> Completed:
    """Run mmdebstrap through env(1): the environment (proxies, certificates) stays the user's, with more variables.

    As a user, it is root in a user namespace, where the user's subordinate IDs stand for those of the image's
    files. In root mode, mmdebstrap mounts /proc, /sys and /dev/* of its chroot where the whole machine sees them,
    and leaves them there when it is killed. In namespaces of its own (unshare(1)), they and all its processes
    disappear with it, and it ends with this tare (prctl(2), PR_SET_PDEATHSIG); its files lie beside `target`.
    """
    own = os.geteuid() == 0
    argv = [
        *("setpriv", "--pdeathsig", "KILL"),
        *(("unshare",) if own else USER_NAMESPACE),
        *("--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("env", f"SOURCE_DATE_EPOCH={EPOCH}", f"TMPDIR={target.parent}", f"TARE_SUITE={release.suite}"),
        *(() if base is None else (f"TARE_BASE={base}",)),
        *("mmdebstrap", "--mode=root" if own else "--mode=unshare", "--variant=essential", "--format=tar"),
        *_OPTIONS,
        *options,
        *release.options,
        release.suite,
        str(target),
        *release.sources,
    ]
    what = f"the root file system of Debian {release.suite} could not be built"
    try:
        return host.run(argv, timeout_s=BUILD_TIMEOUT_S, check=False)
    except TimedOut as error:
        raise EnvironmentLacks(f"{what}: {error}", hint="is the Debian mirror slow, or the machine?") from error
    except RunFailed as error:
        raise EnvironmentLacks(f"{what}: {error}", hint=_NEEDED) from error


def _must_be_built(done: Completed, suite: str) -> None:
    what = f"the root file system of Debian {suite} could not be built"
    if done.code == _NOT_FOUND:
        raise EnvironmentLacks(f"{what}: {_complaints(done)}", hint=_NEEDED)
    if done.code != 0:
        hint = "apt must reach a Debian mirror, and trust it (package debian-archive-keyring)"
        raise EnvironmentLacks(f"{what}: {_complaints(done)}", hint=hint)


def _complaints(done: Completed) -> str:
    """Errors of mmdebstrap and apt (`E: …`), without mmdebstrap's final line that it failed."""
    lines = _lines(done)
    errors = [
        line.removeprefix("E: ") for line in lines if line.startswith("E: ") and "mmdebstrap failed" not in line
    ]
    return "; ".join(dict.fromkeys(errors)) or (lines[-1] if lines else f"mmdebstrap ended with {done.code}")


def _lines(done: Completed) -> list[str]:
    """Lines on stderr; they include the hooks, which mmdebstrap prints before it runs them."""
    return [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
