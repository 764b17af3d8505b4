"""Directories for tare's temporary files on the machine that it runs on, noted in the ledger there.

Directories of a killed tare are removed by the next one that makes some for the same purpose, and by `tare clean`.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import EnvironmentLacks
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import FILE


def make_scratch(ledger: Ledger, purpose: str) -> Path:
    """Make a new directory that only this user can access. Raises `EnvironmentLacks`."""
    prefix = f"{tempfile.gettempdir()}/tare-{purpose}-"
    for made in ledger.abandoned():
        if made.kind is Kind.PATH and made.ident.startswith(prefix):
            remove_scratch(ledger, Path(made.ident))
    path = Path(f"{prefix}{secrets.token_hex(8)}")
    ledger.note(Kind.PATH, str(path))
    try:
        path.mkdir(mode=0o700)
        about = path.stat()
        (path / FILE).write_text(f"{about.st_dev}:{about.st_ino}\n", encoding="ascii")
    except OSError as error:
        ledger.forget(Kind.PATH, str(path))
        raise EnvironmentLacks(
            f"no directory for temporary files can be made at {path}: {error.strerror}",
            hint="free disk space there, or set TMPDIR to another directory",
        ) from error
    return path


def remove_scratch(ledger: Ledger, path: Path) -> None:
    """Remove a directory with its content; if that fails, it stays in the ledger."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        ledger.forget(Kind.PATH, str(path))


@contextmanager
def scratch_directory(ledger: Ledger, purpose: str) -> Iterator[Path]:
    """Give a directory that exists inside the context."""
    path = make_scratch(ledger, purpose)
    try:
        yield path
    finally:
        remove_scratch(ledger, path)
