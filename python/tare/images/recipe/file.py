"""The recipe: an image described by Debian packages and a few files, so that no registry is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tare.errors import EnvironmentLacks, StudyError
from tare.images import ImageConfig
from tare.images.recipe.maven_module import digest_of, sources_of
from tare.sites.binaries import LOAD, PROBE, candidates
from tare.study.catalogue import recipes
from tare.study.reading.document import Document, read
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean
from tare.study.values import Strict

OWN_BINARIES = {binary.name: binary for binary in (LOAD, PROBE)}
BUILDER = 3
"""Changes when the same recipe would be built differently; part of every cache key."""


def _below_root(path: str) -> str:
    parts = PurePosixPath(path).parts[1:]
    if not parts or ".." in parts:
        raise ValueError("expected a path inside the image, other than its root and without `..`")
    if any(part.startswith(".wh.") for part in parts):
        raise ValueError("a name that starts with .wh. would hide another one in the image")
    return path


def _not_empty(packages: tuple[str, ...]) -> tuple[str, ...]:
    if not packages:
        raise ValueError("must not be empty")
    return packages


Absolute = Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]*$")]
Target = Annotated[Absolute, AfterValidator(_below_root)]
Word = Annotated[str, Field(pattern=r"^[^\x00\r\n]*$")]
"""Text that an engine's image configuration can hold: one line."""
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$")]
"""A Debian package name, with `=VERSION` to choose one version (deb-control(5))."""
Packages = Annotated[tuple[Package, ...], AfterValidator(_not_empty)]
Account = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
Mode = Annotated[str, Field(pattern=r"^[0-7]{3,4}$")]


class AddedUser(Strict):
    """A system user with a group of the same name."""

    name: Account
    uid: int = Field(gt=0, lt=65534)
    home: Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f:]*$")] = "/nonexistent"


class AddedFile(Strict):
    """A file with its content in the recipe, or copied from beside the recipe (`source`)."""

    path: Target
    content: str | None = None
    source: str | None = None
    mode: Mode = "0644"
    owner: Account = "root"


class AddedDirectory(Strict):
    """A directory; `empty` removes what packages left in it."""

    path: Target
    mode: Mode = "0755"
    owner: Account = "root"
    empty: bool = False


class AddedModule(Strict):
    """The jars of a Maven module in a folder of the image; `source`: the module, relative to the recipe."""

    path: Target
    source: str
    owner: Account = "root"


class AddedTree(Strict):
    """A directory beside the recipe with all its content; links are refused."""

    path: Target
    source: str
    owner: Account = "root"


class AddedArchive(Strict):
    """A tar from Maven's repository, unpacked into a folder of the image.

    `maven`: GROUP:ARTIFACT:VERSION:tar.gz, followed by `:CLASSIFIER` if there is one. `strip`: number of leading
    folders to cut off each name, as in tar(1); names without more parts are left out.
    """

    path: Target
    maven: Annotated[str, Field(pattern=r"^[\w.-]+:[\w.-]+:[\w.-]+:tar\.gz(:[\w.-]+)?$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    strip: int = Field(default=0, ge=0, le=9)
    owner: Account = "root"


class AddedProgram(Strict):
    """A program of a Go module, as a file of the image.

    `go`: its package; `sum`: its module's sum, as in go.sum.
    """

    path: Target
    go: Annotated[str, Field(pattern=r"^[\w.~-]+(/[\w.~-]+)+$")]
    version: Annotated[str, Field(pattern=r"^v\d[\w.+-]*$")]
    sum: Annotated[str, Field(pattern=r"^h1:[A-Za-z0-9+/]{43}=$")]
    owner: Account = "root"


class AddedBinary(Strict):
    """One of tare's own programs, which need no library: the one that is installed with this tare."""

    path: Target
    name: Literal["tare-load", "tare-probe"]
    owner: Account = "root"


class RecipeFile(Strict):
    """A recipe of format 1. Without `suite` and `packages` the image holds only what the recipe adds."""

    format: Literal[1]
    suite: str | None = Field(default=None, pattern=r"^[a-z][a-z-]*$")
    """Code name of the Debian release."""
    packages: Packages = ()
    valid_until: Literal["checked", "ignored"] = "checked"
    """Whether an expired Release file is refused (`checked`) or accepted; its signature is checked in any case."""
    users: tuple[AddedUser, ...] = ()
    directories: tuple[AddedDirectory, ...] = ()
    files: tuple[AddedFile, ...] = ()
    modules: tuple[AddedModule, ...] = ()
    """Maven modules to build."""
    trees: tuple[AddedTree, ...] = ()
    """Directories to copy."""
    archives: tuple[AddedArchive, ...] = ()
    """Archives to unpack."""
    programs: tuple[AddedProgram, ...] = ()
    """Programs of Go modules to build."""
    binaries: tuple[AddedBinary, ...] = ()
    """tare's own programs to copy."""
    remove: tuple[Target, ...] = ()
    """Unwanted files and directories of packages."""
    entrypoint: tuple[Word, ...] = ()
    command: tuple[Word, ...] = ()
    user: str = Field(default="", pattern=r"^[A-Za-z0-9_:.-]*$")
    env: Mapping[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Word] = Field(default_factory=dict)
    workdir: Absolute = "/"
    data_dir: Target | None = None

    @property
    def config(self) -> ImageConfig:
        """The configuration, as an engine would apply it."""
        return ImageConfig(
            entrypoint=self.entrypoint,
            command=self.command,
            env=tuple(sorted(self.env.items())),
            user=self.user,
            workdir=self.workdir,
            data_dir=self.data_dir,
        )


def find_recipe(name: str) -> Path:
    """Find the file of a recipe by name or path. Raises `StudyError` if there is none."""
    known = recipes()
    if name in known:
        return known[name]
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name)
    raise StudyError(f"no image recipe {name!r}", hint=did_you_mean(name, known, kind="recipes"))


def read_recipe(path: Path) -> RecipeFile:
    """Read and validate a recipe; `StudyError` names file, line, column and key."""
    document = read(path)
    recipe = checked(RecipeFile, document)
    if (recipe.suite is None) != (not recipe.packages):
        lacks, has = ("suite", "packages") if recipe.suite is None else ("packages", "suite")
        raise document.error((has,), f"{has} without {lacks}", hint=f"add `{lacks}`, or leave both out")
    for number, added in enumerate(recipe.files):
        if (added.content is None) == (added.source is None):
            raise document.error(("files", number), "give either content or source")
    _refuse_duplicates(document, recipe)
    return recipe


def _refuse_duplicates(document: Document, recipe: RecipeFile) -> None:
    seen: set[PurePosixPath] = set()
    folders = [("modules", number, made.path) for number, made in enumerate(recipe.modules)]
    folders += [("trees", number, made.path) for number, made in enumerate(recipe.trees)]
    folders += [("archives", number, made.path) for number, made in enumerate(recipe.archives)]
    directories = [("directories", number, made.path) for number, made in enumerate(recipe.directories)]
    files = [("files", number, added.path) for number, added in enumerate(recipe.files)]
    files += [("programs", number, built.path) for number, built in enumerate(recipe.programs)]
    files += [("binaries", number, binary.path) for number, binary in enumerate(recipe.binaries)]
    for key, number, path in directories + folders + files:
        if PurePosixPath(path) in seen:
            raise document.error((key, number, "path"), f"{path} is added twice")
        seen.add(PurePosixPath(path))


def recipe_key(recipe: RecipeFile, path: Path) -> str:
    """Digest of everything that a build depends on: the parsed recipe, files beside it, and tare's own builder."""
    # Left out if empty, as before these keys existed: digests of older recipes stay the same.
    absent = {name for name in ("programs", "binaries") if not getattr(recipe, name)}
    total = hashlib.sha256(f"{BUILDER}\n{recipe.model_dump_json(exclude=absent)}\n".encode())
    for binary in recipe.binaries:
        total.update(f"{hashlib.sha256(binary_content(binary)).hexdigest()}\n".encode())
    for added in recipe.files:
        content = source_content(path, added)
        total.update(f"{len(content)}\n".encode() + content)
    for module in recipe.modules:
        total.update(f"{digest_of(module_of(path, module))}\n".encode())
    for tree in recipe.trees:
        for name, file in tree_files(path, tree):
            content = file.read_bytes()
            total.update(f"{name}\n{file.stat().st_mode & 0o777:o}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


def files_of(path: Path) -> Iterator[Path]:
    """Yield the recipe's file and those beside it that its image is made from."""
    recipe = read_recipe(path)
    yield path
    for added in recipe.files:
        if added.source is not None:
            source_content(path, added)
            yield path.resolve().parent / added.source
    for module in recipe.modules:
        folder = module_of(path, module)
        yield from (folder / name for name, _ in sources_of(folder))
    for tree in recipe.trees:
        yield from (file for _, file in tree_files(path, tree))


def binary_content(added: AddedBinary) -> bytes:
    """The program that is installed with this tare. Raises `EnvironmentLacks` if there is none."""
    binary = OWN_BINARIES[added.name]
    program = next((Path(path) for path in candidates(binary) if Path(path).is_file()), None)
    if program is None:
        raise EnvironmentLacks(f"{binary.name} is missing", hint=binary.hint)
    return program.read_bytes()


def module_of(recipe: Path, added: AddedModule) -> Path:
    """Path of a recipe's Maven module, which may be anywhere in the checkout."""
    return (recipe.resolve().parent / added.source).resolve()


def tree_files(recipe: Path, added: AddedTree) -> Iterator[tuple[str, Path]]:
    """(path below the tree, file), in the order of paths; anything but files and directories is refused."""
    root = recipe.resolve().parent / added.source
    if not root.is_dir():
        raise StudyError(f"{recipe}: trees: {added.source!r} is no directory beside the recipe")
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StudyError(f"{recipe}: trees: {path} is neither a file nor a directory")
        if path.is_file():
            yield path.relative_to(root).as_posix(), path


def source_content(recipe: Path, added: AddedFile) -> bytes:
    """Content of an added file; a `source` outside the recipe's folder is refused."""
    if added.content is not None:
        return added.content.encode()
    folder = recipe.resolve().parent
    path = (folder / str(added.source)).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise StudyError(f"{recipe}: files: {added.source!r} is no file beside the recipe")
    return path.read_bytes()
