"""The parts of the OCI image specification (1.1) that tare reads; other parts may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tare.errors import StudyError

_MAX_BYTES = 16 << 20
"""Largest file that is read. The specification asks registries to accept manifests of 4 MiB."""
REF_NAME = "org.opencontainers.image.ref.name"


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _null_as_empty(value: object) -> object:
    """Go writes an empty list or map as null."""
    return () if value is None else value


def _null_as_map(value: object) -> object:
    return {} if value is None else value


Words = Annotated[tuple[str, ...], BeforeValidator(_null_as_empty)]


class Platform(_Read):
    """Machine that a manifest is for."""

    architecture: str = ""
    os: str = ""


class Descriptor(_Read):
    """descriptor.md: digest and size of a blob. Only sha256 is supported."""

    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: int | None = Field(default=None, ge=0)
    platform: Platform = Platform()
    annotations: Annotated[Mapping[str, str], BeforeValidator(_null_as_map)] = {}

    @property
    def hexadecimal(self) -> str:
        """The digest without its algorithm."""
        return self.digest.partition(":")[2]


class Manifest(_Read):
    """manifest.md and image-index.md in one: an index has `manifests`, an image has `config` and `layers`."""

    manifests: tuple[Descriptor, ...] | None = None
    config: Descriptor | None = None
    layers: tuple[Descriptor, ...] = ()


class Settings(_Read):
    """The `config` of config.md: settings that an engine applies to a container."""

    user: Annotated[str | None, Field(alias="User")] = None
    env: Annotated[Words, Field(alias="Env")] = ()
    entrypoint: Annotated[Words, Field(alias="Entrypoint")] = ()
    command: Annotated[Words, Field(alias="Cmd")] = ()
    workdir: Annotated[str | None, Field(alias="WorkingDir")] = None
    volumes: Annotated[Mapping[str, object], Field(alias="Volumes"), BeforeValidator(_null_as_map)] = {}


class ImageFile(_Read):
    """config.md. `architecture` is empty in images that were imported from a plain tar."""

    architecture: str = ""
    os: str = ""
    config: Settings | None = None


class SavedImage(_Read):
    """An entry of manifest.json, as `docker save` writes it."""

    config: str = Field(alias="Config")
    layers: tuple[str, ...] = Field(alias="Layers")


Model = TypeVar("Model", bound=BaseModel)


def read_json(model: type[Model], path: Path) -> Model:
    """Read a file as a `model`. Raises `StudyError` with what is wrong."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise StudyError(f"{path} is longer than {_MAX_BYTES >> 20} MiB", hint="is it part of an image?")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise StudyError(f"{path} is no part of an image: {where}{': ' if where else ''}{first['msg']}") from error
