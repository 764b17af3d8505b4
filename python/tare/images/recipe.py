"""Images from a recipe: a Debian root file system made by mmdebstrap, and a layer of the recipe's own on top."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.images import Archive, Workshop
from tare.images.recipe_file import AddedUser, RecipeFile, find_recipe, read_recipe, recipe_key, source_content

BUILD_TIMEOUT_S = 1800.0
_EPOCH = "0"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/var/log/*.log")
_NOISE = ("/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostname", "/etc/resolv.conf", "/var/cache/ldconfig")
"""Differs from build to build or is the building host's; a deployment gives its own where one is needed."""


class Recipe:
    """`NAME` of a recipe that comes with tare, or the path of a recipe file ending in .yaml."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """The recipe and what it adds. Versions of packages are fixed by the first build, not looked up again."""
        del workshop
        path = find_recipe(reference)
        return recipe_key(read_recipe(path), path.parent)

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Build. The packages come by the host's own apt configuration; signatures are checked by it."""
        path = find_recipe(reference)
        recipe = read_recipe(path)
        base, own = scratch / "base.tar", scratch / "recipe.tar"
        _debootstrap(recipe, workshop, base)
        write_layer(recipe, path.parent, base, own)
        return Archive((base, own), recipe.config)


def _debootstrap(recipe: RecipeFile, workshop: Workshop, target: Path) -> None:
    argv = ["mmdebstrap", "--quiet", "--mode=root", "--variant=essential", "--format=tar"]
    argv += [f"--include={','.join(recipe.packages)}"]
    argv += [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
    argv += ["--aptopt=Acquire::Languages none", "--aptopt=Acquire::Retries 3", recipe.suite, str(target)]
    try:
        # Through env(1): the environment (proxies, certificates) stays the user's, with one variable more.
        workshop.host.run(["env", f"SOURCE_DATE_EPOCH={_EPOCH}", *argv], timeout_s=BUILD_TIMEOUT_S)
    except TimedOut:
        raise
    except RunFailed as error:
        raise EnvironmentLacks(
            f"the image's root file system ({recipe.suite}) could not be built: {error}",
            hint="mmdebstrap must be installed, run as root, and apt must reach its packages: see `tare doctor`",
        ) from error


def write_layer(recipe: RecipeFile, folder: Path, base: Path, target: Path) -> None:
    """The recipe's users, directories, files and removals, as a layer over `base`."""
    accounts = _read_accounts(base)
    owners = _owners(accounts["etc/passwd"]) | {user.name: user.uid for user in recipe.users}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in (*_NOISE, *recipe.remove):
            parent, _, name = path.strip("/").rpartition("/")
            _add(tar, f"{parent}/.wh.{name}", b"", 0o644, 0)
        for name, lines in _with_users(accounts, recipe.users):
            _add(tar, name, lines.encode(), 0o644, 0)
        for made in recipe.directories:
            owner = _owner(owners, made.owner)
            if made.empty:
                _add(tar, f"{made.path.strip('/')}/.wh..wh..opq", b"", 0o644, 0)
            _add(tar, made.path.strip("/"), None, int(made.mode, 8), owner)
        for added in recipe.files:
            content = source_content(folder, added)
            _add(tar, added.path.strip("/"), content, int(added.mode, 8), _owner(owners, added.owner))


def _add(tar: tarfile.TarFile, name: str, content: bytes | None, mode: int, owner: int) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.uid, member.gid, member.mtime = mode, owner, owner, int(_EPOCH)
    if content is None:
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
        return
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _read_accounts(base: Path) -> Mapping[str, str]:
    with tarfile.open(base) as tar:
        return {name: _text(tar, name) for name in ("etc/passwd", "etc/group")}


def _text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(f"./{name}")
    if file is None:
        raise EnvironmentLacks(f"the root file system that was built has no /{name}", hint="build it again")
    return file.read().decode()


def _with_users(accounts: Mapping[str, str], users: tuple[AddedUser, ...]) -> Iterator[tuple[str, str]]:
    """passwd(5) and group(5) with the recipe's users, none where it adds none."""
    if not users:
        return
    passwd = "".join(f"{user.name}:x:{user.uid}:{user.uid}::{user.home}:/usr/sbin/nologin\n" for user in users)
    group = "".join(f"{user.name}:x:{user.uid}:\n" for user in users)
    yield "etc/passwd", accounts["etc/passwd"] + passwd
    yield "etc/group", accounts["etc/group"] + group


def _owners(passwd: str) -> dict[str, int]:
    fields = [line.split(":") for line in passwd.splitlines() if line.count(":") >= 3]
    return {field[0]: int(field[2]) for field in fields}


def _owner(owners: Mapping[str, int], name: str) -> int:
    if name not in owners:
        raise EnvironmentLacks(f"the recipe gives a file to {name!r}, a user that the image does not have")
    return owners[name]
