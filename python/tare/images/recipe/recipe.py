"""Images from a recipe: a Debian root file system, with a layer of the recipe's own on top."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import StudyError
from tare.images import Archive, Workshop
from tare.images.oci.layer_stream import open_layer
from tare.images.packages import BUILT_HERE
from tare.images.recipe.archive import archive_files, fetch_archive
from tare.images.recipe.debian_root import EMPTIED, NOISE, build_root
from tare.images.recipe.file import (
    AddedArchive,
    AddedTree,
    AddedUser,
    RecipeFile,
    binary_content,
    find_recipe,
    module_of,
    read_recipe,
    recipe_key,
    source_content,
    tree_files,
)
from tare.images.recipe.go_program import BuiltProgram, build_program
from tare.images.recipe.maven_module import build_jars
from tare.version import __version__

_ACCOUNTS = ("etc/passwd", "etc/group")


class Recipe:
    """`NAME` of a recipe that comes with tare, or the path of a recipe file ending in .yaml."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """Digest of the recipe and what it adds.

        The first build fixes versions of packages; they are not looked up again.
        """
        del workshop
        path = find_recipe(reference)
        return recipe_key(read_recipe(path), path)

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Build the image. Packages come through the host's own apt, which checks their signatures."""
        path = find_recipe(reference)
        recipe = read_recipe(path)
        base, own = scratch / "base.tar", scratch / "recipe.tar"
        any_date = recipe.valid_until == "ignored"
        if recipe.suite is None:
            with tarfile.open(base, "w"):
                pass  # nothing below what the recipe adds
        else:
            host, bases = workshop.host, workshop.bases
            build_root(host, recipe.suite, recipe.packages, base, any_date=any_date, bases=bases)
        jars = {
            module.path: build_jars(workshop.host, module_of(path, module), scratch / f"module-{number}")
            for number, module in enumerate(recipe.modules)
        }
        tars = {
            each.path: fetch_archive(workshop.host, each, scratch / f"archive-{number}")
            for number, each in enumerate(recipe.archives)
        }
        programs = {
            each.path: build_program(workshop.host, each, scratch / f"program-{number}")
            for number, each in enumerate(recipe.programs)
        }
        write_layer(recipe, path, base, own, FetchedFiles(jars, tars, programs))
        return Archive((base, own), recipe.config)


@dataclass(frozen=True)
class FetchedFiles:
    """Files built or fetched for a recipe, by path in the image: jars of modules, tars of archives, programs."""

    jars: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    tars: Mapping[str, Path] = field(default_factory=dict)
    programs: Mapping[str, BuiltProgram] = field(default_factory=dict)


_NOTHING = FetchedFiles()


@dataclass(frozen=True)
class _Owner:
    uid: int
    gid: int


_ROOT = _Owner(0, 0)


def write_layer(
    recipe: RecipeFile,
    path: Path,
    base: Path,
    target: Path,
    fetched: FetchedFiles = _NOTHING,
) -> None:
    """Write the layer of the recipe at `path`: noise and removals from `base`, users, directories, files."""
    accounts = _read_accounts(base)
    owners = {"root": _ROOT, **_owners(accounts["etc/passwd"])}
    for user in recipe.users:
        if user.name in owners or user.uid in {owner.uid for owner in owners.values()}:
            raise StudyError(
                f"{path}: users: {user.name} ({user.uid}) exists already, from a package or listed twice"
            )
        owners[user.name] = _Owner(user.uid, user.uid)

    def owner(name: str) -> _Owner:
        if name not in owners:
            raise StudyError(f"{path}: there is no user {name!r} to own files", hint="add it under users")
        return owners[name]

    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        _hide_removed(tar, recipe)
        for name, content in _with_users(accounts, recipe.users).items():
            _add(tar, name, content.encode())
        for made in recipe.directories:
            _add(tar, made.path.strip("/"), None, int(made.mode, 8), owner(made.owner))
        _add_fetched(tar, recipe, fetched, owner)
        for tree in recipe.trees:
            _add_tree(tar, tree, path, owner(tree.owner))
        for added in recipe.files:
            _add(tar, added.path.strip("/"), source_content(path, added), int(added.mode, 8), owner(added.owner))


def _add_fetched(
    tar: tarfile.TarFile, recipe: RecipeFile, fetched: FetchedFiles, owner: Callable[[str], _Owner]
) -> None:
    for module in recipe.modules:
        _add_jars(tar, module.path.strip("/"), fetched.jars[module.path], owner(module.owner))
    for archive in recipe.archives:
        _add_archive(tar, archive, fetched.tars[archive.path], owner(archive.owner))
    listed = []
    for binary in recipe.binaries:
        content = binary_content(binary)
        _add(tar, binary.path.strip("/"), content, 0o755, owner(binary.owner))
        listed.append(f"{binary.name}\t{__version__} sha256:{hashlib.sha256(content).hexdigest()}\n")
    for program in recipe.programs:
        built = fetched.programs[program.path]
        _add(tar, program.path.strip("/"), built.file.read_bytes(), 0o755, owner(program.owner))
        listed.append(f"{program.go}\t{program.version} {program.sum} {built.toolchain}\n")
    if listed:
        _add(tar, BUILT_HERE, "".join(listed).encode())


def _hide_removed(tar: tarfile.TarFile, recipe: RecipeFile) -> None:
    if recipe.suite is None:
        return
    for hidden in (*NOISE, *recipe.remove):
        parent, _, name = hidden.strip("/").rpartition("/")
        _add(tar, f"{parent}/.wh.{name}", b"")
    for emptied in (*EMPTIED, *(made.path for made in recipe.directories if made.empty)):
        _add(tar, f"{emptied.strip('/')}/.wh..wh..opq", b"")


def _add_jars(tar: tarfile.TarFile, place: str, jars: Sequence[Path], owner: _Owner) -> None:
    _add(tar, place, None, 0o755, owner)
    for jar in jars:
        _add(tar, f"{place}/{jar.name}", jar.read_bytes(), 0o644, owner)


def _add_archive(tar: tarfile.TarFile, archive: AddedArchive, source: Path, owner: _Owner) -> None:
    """Add the archive's files with their modes, under their new owner, and the folders that contain them."""
    place = archive.path.strip("/")
    _add(tar, place, None, 0o755, owner)
    for member in archive_files(archive, source):
        name = f"{place}/{member.name}"
        _add(tar, name, member.content, member.mode, owner)


def _add_tree(tar: tarfile.TarFile, tree: AddedTree, recipe: Path, owner: _Owner) -> None:
    """Add files with their modes; folders are readable for everyone."""
    folders: set[str] = set()
    for name, file in tree_files(recipe, tree):
        place = f"{tree.path.strip('/')}/{name}"
        above = place.split("/")[:-1]
        for depth in range(len(tree.path.strip("/").split("/")), len(above) + 1):
            folder = "/".join(above[:depth])
            if folder not in folders:
                folders.add(folder)
                _add(tar, folder, None, 0o755, owner)
        _add(tar, place, file.read_bytes(), file.stat().st_mode & 0o777, owner)


def _add(tar: tarfile.TarFile, name: str, content: bytes | None, mode: int = 0o644, owner: _Owner = _ROOT) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.uid, member.gid = mode, owner.uid, owner.gid
    if content is None:
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
        return
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _read_accounts(base: Path) -> Mapping[str, str]:
    accounts = {}
    with open_layer(base) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if name in _ACCOUNTS and (file := tar.extractfile(member)) is not None:
                accounts[name] = file.read().decode()
    return {name: accounts.get(name, "") for name in _ACCOUNTS}


def _with_users(accounts: Mapping[str, str], users: tuple[AddedUser, ...]) -> Mapping[str, str]:
    """passwd(5) and group(5) with the recipe's users; empty if it adds none."""
    if not users:
        return {}
    passwd = "".join(f"{user.name}:x:{user.uid}:{user.uid}::{user.home}:/usr/sbin/nologin\n" for user in users)
    group = "".join(f"{user.name}:x:{user.uid}:\n" for user in users)
    return {"etc/passwd": accounts["etc/passwd"] + passwd, "etc/group": accounts["etc/group"] + group}


def _owners(passwd: str) -> dict[str, _Owner]:
    rows = [line.split(":") for line in passwd.splitlines() if line.count(":") >= 3]
    return {row[0]: _Owner(int(row[2]), int(row[3])) for row in rows}
