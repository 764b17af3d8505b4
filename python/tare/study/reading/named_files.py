"""Files that a study names: their paths relative to the study file, and the content that decides what runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tare.errors import StudyError
from tare.study.model import Arm, NamedFile, Placement
from tare.study.reading.document import Document, KeyPath
from tare.study.registry import Registry

Side = TypeVar("Side", bound=Placement)
_DOCKER = re.compile(r"docker://[a-z0-9][\w.:/-]*(@sha256:[0-9a-f]{64})?")
_FILES = re.compile(r"(oci|tar):.+")
_RECIPES = (".yaml", ".yml")
_MOST_KEPT_BYTES = 64 * 1024
"""Longest text that a plan contains as it is; of a longer one, it contains the digest."""


def is_image(image: str, recipes: frozenset[str]) -> bool:
    """Whether `image` has the form of a reference; only a recipe's name has to be known."""
    return bool(image in recipes or is_recipe_path(image) or _DOCKER.fullmatch(image) or _FILES.fullmatch(image))


def is_recipe_path(image: str) -> bool:
    """Whether an image is named by the path of a recipe."""
    return image.endswith(_RECIPES) and _FILES.fullmatch(image) is None


def check_files(document: Document, where: KeyPath, placement: Placement, registry: Registry) -> None:
    """Check that the files which one side names are there, and that a recipe is right."""
    keys = {"image": placement.image, "seccomp": placement.confinement.seccomp}
    paths = {"image": ("image",), "seccomp": ("confinement", "seccomp")}
    for key, path in _named_by(with_absolute_paths(document, placement)):
        try:
            for file in registry.files_of_recipe(path) if key == "image" else (path,):
                file.read_bytes()
        except OSError as error:
            why = f"{keys[key]!r} cannot be read: {error.strerror}"
            raise document.error((*where, *paths[key]), why, hint=f"tare looked for {path}") from error
        except StudyError as error:
            raise document.error((*where, *paths[key]), error.what, hint=error.hint) from error


def with_absolute_paths(document: Document, placement: Side) -> Side:
    """Resolve the paths of one side relative to the study file, wherever `tare` is called from."""
    changes: dict[str, Any] = {}
    kind, colon, path = placement.image.partition(":")
    if is_recipe_path(placement.image):
        changes["image"] = absolute(document, placement.image)
    elif colon and kind in {"oci", "tar"}:
        changes["image"] = f"{kind}:{absolute(document, path)}"
    if (profile := placement.confinement.profile) is not None:
        given = {"seccomp": absolute(document, profile)}
        changes["confinement"] = placement.confinement.model_copy(update=given)
    return placement.model_copy(update=changes)


def absolute(document: Document, path: str) -> str:
    """Return a path of the study file as an absolute one."""
    return str(Path(document.file).parent.absolute() / path)


def named_files(arms: tuple[Arm, ...], registry: Registry) -> Mapping[str, NamedFile]:
    """Return what the arms' files contain: path → content. A workload's own files are in its parameters."""
    whole: set[Path] = set()
    for side in (side for arm in arms for side in arm.settings.sides.values()):
        for key, path in _named_by(side):
            whole |= set(registry.files_of_recipe(path)) if key == "image" else {path}
    for arm in arms:
        whole |= set(_left_in_workload(registry, arm))
    return {str(path): _content(path) for path in sorted(whole)}


def _named_by(placement: Placement) -> Iterator[tuple[str, Path]]:
    if is_recipe_path(placement.image):
        yield "image", Path(placement.image)
    if placement.confinement.profile is not None:
        yield "seccomp", Path(placement.confinement.profile)


def _left_in_workload(registry: Registry, arm: Arm) -> Iterator[Path]:
    """Yield the files that a workload's parameters still name after they were read, as a plug-in's may."""
    for dotted in registry.workloads[arm.settings.workload_name].paths:
        value: Any = arm.settings.workload
        for key in dotted.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str) and Path(value).is_file():
            yield Path(value)


def _content(path: Path) -> NamedFile:
    raw = path.read_bytes()
    try:
        text = raw.decode() if len(raw) <= _MOST_KEPT_BYTES else None
    except UnicodeDecodeError:
        text = None
    return NamedFile(sha256=hashlib.sha256(raw).hexdigest(), text=text)
