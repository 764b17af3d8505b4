"""tare: what it costs a database, and its benchmark, to run in a container or a virtual machine."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from tare.version import __version__

if TYPE_CHECKING:
    from tare.report.frames.results import Results

__all__ = ["__version__", "open_store"]


def open_store(path: str | PathLike[str]) -> Results:
    """Open a store (a directory or a URL) for reading, even while `tare run` writes it: docs/reference/python.md.

    Raises `tare.errors.StoreError` if there is no store, or if it is damaged or newer than this tare.
    """
    from os import fspath

    from tare.report.frames.results import Results  # polars and scipy are slow to import
    from tare.store import open_store as opened
    from tare.store_place import parse_store_url

    return Results(opened(parse_store_url(fspath(path))))
