"""A directory of results at a URL of fsspec, as a temporary directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from tare.errors import EnvironmentLacks, StudyError
from tare.imports.contents import LARGEST

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MOST_FILES, _MOST_BYTES = 100_000, 4 << 30
_SEPARATOR = "://"
_PASSWORD = re.compile(r"//[^/@]*@")
T = TypeVar("T")


@dataclass(frozen=True)
class Fetched:
    """The copy of a directory. `left_out`: why a file is not in it, a sentence each."""

    directory: Path
    left_out: tuple[str, ...]


def is_url(text: str) -> bool:
    """Whether a text is a URL, and no path."""
    return _SEPARATOR in text


@contextmanager
def fetched(url: str) -> Iterator[Fetched]:
    """Copy the files below a URL. Raises `StudyError` for what cannot be read, `EnvironmentLacks`."""
    system, root = _system(url)
    url = _PASSWORD.sub("//", url)
    found = _asked(url, lambda: system.find(root, detail=True))
    sizes = {name: int(entry.get("size") or 0) for name, entry in found.items() if entry.get("type") == "file"}
    if not sizes:
        raise StudyError(f"there is no file below {url}", hint="name a directory with results")
    if len(sizes) > _MOST_FILES or sum(sizes.values()) > _MOST_BYTES:
        raise StudyError(
            f"{url} has {len(sizes)} files with {sum(sizes.values()) >> 20} MiB: that is too much to copy",
            hint="name a directory below it, or copy it and import the copy",
        )
    with TemporaryDirectory(prefix="tare-import-") as place:
        directory = Path(place) / (root.rstrip("/").rsplit("/", 1)[-1] or "results")
        directory.mkdir()
        yield Fetched(directory, tuple(_copied(url, system, root, sizes, directory)))


def _copied(
    url: str, system: AbstractFileSystem, root: str, sizes: dict[str, int], directory: Path
) -> Iterator[str]:
    """Copy each file; yield why one is left out."""
    for name, size in sizes.items():
        relative = name.removeprefix(root).lstrip("/") or name.rsplit("/", 1)[-1]
        if size > LARGEST:
            yield f"not read: {relative} is larger than {LARGEST >> 20} MiB"
            continue
        if ".." in relative.split("/"):
            yield f"not read: the name {relative!r} leads out of the directory"
            continue
        target = directory / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_asked(url, partial(system.cat_file, name)))


def _system(url: str) -> tuple[AbstractFileSystem, str]:
    protocol = url.partition(_SEPARATOR)[0]
    try:
        import fsspec

        system, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise EnvironmentLacks(
            f"{protocol}{_SEPARATOR} needs another package: {error}",
            hint="pip install 'tare-bench[import-url]' and what fsspec asks for, or import a copy of the files",
        ) from error
    except ValueError as error:
        raise StudyError(
            f"{protocol}{_SEPARATOR} cannot be read: {error}",
            hint="a protocol of fsspec, such as s3:// or https://",
        ) from error
    return system, str(root)


def _asked(url: str, ask: Callable[[], T]) -> T:
    """Answer of a file system, each of which has errors of its own."""
    try:
        return ask()
    except Exception as error:
        why = str(error) or type(error).__name__
        raise StudyError(f"{url} cannot be read: {why[:300]}", hint="is it right, and may it be read?") from error
