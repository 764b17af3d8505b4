"""`tare init`: a commented study to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tare.errors import StudyError
from tare.study.catalogue import FILE
from tare.study.starter import starter

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def init(
    name: Annotated[str, typer.Argument(help="Name of the study, and of the directory made for it.")] = "my-study",
) -> None:
    """Write NAME/study.yaml, a commented study to adapt."""
    path = write(Path(), name)
    typer.echo(f"{path}: change it to your question, then `tare plan {path.parent}`.")


def write(folder: Path, name: str) -> Path:
    """Write the starter study into `folder`/`name`. Raises `StudyError` rather than overwrite anything."""
    if not _NAME.fullmatch(name):
        raise StudyError(f"{name!r} cannot be a study's name", hint="letters, digits, dots and hyphens; at most 63")
    path = folder / name / FILE
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(name))
    except FileExistsError as error:
        raise StudyError(f"{error.filename} exists already", hint="choose another name") from error
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror}") from error
    return path
