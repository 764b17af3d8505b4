"""The studies that come with tare, each read once a process: reading one checks all of its scales."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tare.study.catalogue import studies
from tare.study.model import Study
from tare.study.reading import load
from tare.study.registry import installed


@cache
def at_every_scale(path: Path) -> Mapping[str, Study]:
    """Scale → the study in the file at `path`."""
    return load.at_every_scale(path, installed())


def shipped(name: str, scale: str = "full") -> Study:
    """By the name that `tare plan` takes."""
    return at_every_scale(studies()[name])[scale]
