"""The recipe: an image described by Debian packages and a few files, so that no registry is needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tare.errors import StudyError
from tare.images import ImageConfig
from tare.study.catalogue import recipes
from tare.study.suggest import did_you_mean

BUILDER = 1
"""Changes when the same recipe would be built otherwise; part of every cache key."""

Absolute = Annotated[str, Field(pattern=r"^/[^\x00-\x1f]*$")]
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$")]
"""A Debian package name, with `=VERSION` where one version is meant (deb-control(5))."""
Account = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AddedUser(_Strict):
    """A system user with a group of the same name."""

    name: Account
    uid: int = Field(gt=0, lt=65534)
    home: Absolute = "/nonexistent"


class AddedFile(_Strict):
    """A file with its content in the recipe, or copied from beside it (`source`)."""

    path: Absolute
    content: str | None = None
    source: str | None = None
    mode: str = Field(default="0644", pattern=r"^[0-7]{3,4}$")
    owner: Account = "root"


class AddedDirectory(_Strict):
    """A directory; `empty` removes what packages left in it."""

    path: Absolute
    mode: str = Field(default="0755", pattern=r"^[0-7]{3,4}$")
    owner: Account = "root"
    empty: bool = False


class RecipeFile(_Strict):
    """A recipe of format 1."""

    format: int = Field(ge=1, le=1)
    suite: str = Field(pattern=r"^[a-z][a-z-]*$")
    """Debian release by its code name."""
    packages: tuple[Package, ...] = Field(min_length=1)
    users: tuple[AddedUser, ...] = ()
    directories: tuple[AddedDirectory, ...] = ()
    files: tuple[AddedFile, ...] = ()
    remove: tuple[Absolute, ...] = ()
    """Files and directories of packages that are not wanted."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    workdir: Absolute = "/"
    data_dir: Absolute | None = None

    @property
    def config(self) -> ImageConfig:
        """As an engine would apply it."""
        return ImageConfig(
            entrypoint=self.entrypoint,
            command=self.command,
            env=tuple(sorted(self.env.items())),
            user=self.user,
            workdir=self.workdir,
            data_dir=self.data_dir,
        )


def find_recipe(name: str) -> Path:
    """The file of a recipe, by name or by path. Raises `StudyError` where there is none."""
    known = recipes()
    if name in known:
        return known[name]
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name)
    raise StudyError(f"no image recipe {name!r}", hint=did_you_mean(name, known, kind="recipes"))


def read_recipe(path: Path) -> RecipeFile:
    """Read and validate; `StudyError` names the file and the key."""
    try:
        tree = YAML(typ="safe", pure=True).load(path.read_bytes())
        recipe = RecipeFile.model_validate_json(json.dumps(tree))
    except (OSError, YAMLError, UnicodeDecodeError, TypeError) as error:
        raise StudyError(f"{path}: the recipe cannot be read: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"]) or "the file"
        raise StudyError(f"{path}: {key}: {first['msg']}", hint="see docs/reference/recipes.md") from error
    for added in recipe.files:
        if (added.content is None) == (added.source is None):
            raise StudyError(f"{path}: files: {added.path}: give either content or source")
    return recipe


def recipe_key(recipe: RecipeFile, folder: Path) -> str:
    """What a build depends on: the recipe as understood, the files beside it, how tare builds."""
    total = hashlib.sha256(f"{BUILDER}\n{recipe.model_dump_json()}\n".encode())
    for added in recipe.files:
        if added.source is not None:
            total.update(source_content(folder, added))
    return total.hexdigest()


def source_content(folder: Path, added: AddedFile) -> bytes:
    """The bytes of an added file; a `source` outside the recipe's folder is refused."""
    if added.content is not None:
        return added.content.encode()
    path = (folder / str(added.source)).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise StudyError(f"{folder}: {added.source!r} is no file beside the recipe")
    return path.read_bytes()
