"""Raw files brought home into the store's staging, and kept free of the run's passwords."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from tare.databases import Secrets
from tare.sites import Host

USER = "tare"
_BYTES = 24
_MASK = b"[password]"


_TIMEOUT_S = 30.0


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


def collect(
    host: Host, source: str, staging: Path, *, notes: Mapping[str, str], secrets: Secrets
) -> tuple[str, ...]:
    """Copy the directory `source` and tare's own `notes` (name → text); the names of what is now in `staging`.

    A run that failed early may not have made the directory. Nothing is left in `staging` when it cannot be done
    whole (a full disk, most likely).
    """
    try:
        staging.mkdir(parents=True, exist_ok=True)
        if host.run(["test", "-d", source], timeout_s=_TIMEOUT_S, check=False).code == 0:
            host.get(source, staging)
        for name, text in notes.items():
            (staging / name).write_text(text)
        redact(staging, secrets)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return raw_names(staging)


def raw_names(staging: Path) -> tuple[str, ...]:
    """The files in `staging`, by their paths below it."""
    return tuple(sorted(str(path.relative_to(staging)) for path in staging.rglob("*") if not path.is_dir()))
