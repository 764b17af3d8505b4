"""Passwords: made anew for every run, and kept out of everything that is kept."""

from __future__ import annotations

import secrets
from pathlib import Path

from tare.databases import Secrets

USER = "tare"
_BYTES = 24
_MASK = b"[password]"


def new_secrets() -> Secrets:
    """A user of ours with a random password of letters and digits, safe in any configuration file."""
    return Secrets(user=USER, password=secrets.token_hex(_BYTES))


def redact(directory: Path, known: Secrets) -> None:
    """Mask the password wherever it stands in a file below `directory`."""
    password = known.password.encode()
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink() and password in (content := path.read_bytes()):
            path.write_bytes(content.replace(password, _MASK))


def redacted(text: str, known: Secrets) -> str:
    """The same for a message."""
    return text.replace(known.password, _MASK.decode())
