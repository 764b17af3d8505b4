"""Locations of the studies, image recipes and claims shipped with tare, in a checkout and when installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tare.errors import StudyError
from tare.study.suggest import did_you_mean

FILE = "study.yaml"
TRAPS = "traps"
"""Folder of the traps, among those of the claims."""
_CATALOGUE = Path(__file__).resolve().parent.parent / "_catalogue"
"""Files in an installed wheel; in a checkout, links to its own folders."""


def recipes() -> Mapping[str, Path]:
    """Return the image recipes shipped with tare: name → file."""
    return {path.stem: path for path in sorted((_CATALOGUE / "images").resolve().glob("*.yaml"))}


def studies() -> Mapping[str, Path]:
    """Return the studies shipped with tare: name → file. Parts of one publication lie below it: `NAME/PART`."""
    folder = (_CATALOGUE / "studies").resolve()
    return {str(path.parent.relative_to(folder)): path for path in sorted(folder.glob(f"**/{FILE}"))}


def claims_folder() -> Path:
    """Return the directory of the claims shipped with tare, one file each."""
    return (_CATALOGUE / "knowledge").resolve()


def traps_folder() -> Path:
    """Return the directory of the traps shipped with tare, one file each."""
    return claims_folder() / TRAPS


def find_study(given: str) -> Path:
    """Return the study file that a name, a directory or a file refers to. Raises `StudyError` if there is none.

    Existing paths come first; any other word is the name of a study shipped with tare.
    """
    path = Path(given)
    if path.is_dir() and (path / FILE).exists():
        return path / FILE
    if path.exists() and not path.is_dir():
        return path
    known = studies()
    if given in known:
        return known[given]
    if path.is_dir():
        raise StudyError(f"there is no {FILE} in {given}", hint="`tare init NAME` writes one to start from")
    raise StudyError(
        f"no study {given!r}: neither a file, nor a directory, nor one that comes with tare",
        hint=did_you_mean(given, known, kind="studies that come with tare"),
    )
