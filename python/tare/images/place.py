"""Where a name of an archive lies below a root, however hostile the name and the links on its way.

Links are followed as a program whose root is that directory would follow them: a link to `/etc` or to `../../..`
leads to a place inside. Names with `..` are refused, since no honest layer has them.
"""

from __future__ import annotations

import os
from pathlib import Path

from tare.errors import StudyError

_MAX_LINKS = 40
_MAX_DEPTH = 256
"""Far above any honest image, and far below what path lengths and Python's own stack allow."""


def steps(name: str) -> list[str]:
    """The name's parts, `[]` for the root itself. Raises `StudyError` for one that no layer should hold."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise StudyError(f"the image entry {name!r} would leave the image's root", hint="do not use this image")
    if len(parts) > _MAX_DEPTH:
        raise StudyError(f"the image entry {name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
    return parts


def place(root: Path, name: str, *, follow_last: bool = False) -> Path:
    """The path of `name` below `root`; no part of it but perhaps the last one is a symbolic link."""
    todo = steps(name)[::-1]
    here: list[str] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            del here[-1:]
            continue
        path = root.joinpath(*here, part)
        if not (todo or follow_last) or not path.is_symlink():
            here.append(part)
            continue
        links += 1
        target = os.readlink(path)  # noqa: PTH115 - pathlib would tidy it
        if links > _MAX_LINKS or len(here) > _MAX_DEPTH:
            raise StudyError(f"the image entry {name!r} goes through too many links")
        here = [] if target.startswith("/") else here
        # Split by hand: pathlib keeps the two slashes of "//etc", and joined to the root they would replace it.
        todo += [step for step in reversed(target.split("/")) if step not in ("", ".")]
    if len(here) > _MAX_DEPTH:
        raise StudyError(f"the image entry {name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
    return root.joinpath(*here)
