"""Where a benchmark works: a directory and an environment of its own, for as long as it lasts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for as long as this lasts."""
    with tempfile.TemporaryDirectory(prefix="tare-bench-fleet-") as place:
        yield Path(place)


@contextmanager
def variables(**given: str) -> Iterator[None]:
    """Environment variables for as long as this lasts."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old
