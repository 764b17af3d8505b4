"""Copy raw files into the store's staging and mask the run's passwords."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from tare.databases import Secrets
from tare.run.at_once import at_once
from tare.run.attempt.certificates import new_certificate
from tare.run.attempt.directory import WorkDirectory

USER = "tare"
_BYTES = 24
_PIECE_BYTES = 4 << 20
_MASK, _KEY_MASK = "[password]", "[key]"


_TIMEOUT_S = 30.0


def new_secrets(*, tls: bool = False) -> Secrets:
    """Make a user of tare's own with a random password of letters and digits, safe in any configuration file.

    `tls`: also make a certificate for the server.
    """
    password = secrets.token_hex(_BYTES)
    return Secrets(USER, password, new_certificate(password) if tls else None)


def redact(directory: Path, known: Secrets) -> None:
    """Mask the password and the private key in every file below `directory`."""
    hidden = {secret.encode(): mask.encode() for secret, mask in _hidden(known).items()}
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            _mask(path, hidden)


def _mask(path: Path, hidden: Mapping[bytes, bytes]) -> None:
    """Mask secrets in one file, in pieces: a server may have printed more than this machine has memory.

    Each piece is read with the end of the one before, as a secret may lie across both.
    """
    kept = max(map(len, hidden)) - 1
    with path.open("rb") as source:
        if not any(secret in piece for piece in _pieces(source, kept) for secret in hidden):
            return
    masked_path = path.with_name(f"{path.name}.{uuid4().hex}")
    with path.open("rb") as source, masked_path.open("wb") as target:
        rest = b""
        while piece := source.read(_PIECE_BYTES):
            masked = rest + piece
            for secret, mask in hidden.items():
                masked = masked.replace(secret, mask)
            target.write(masked[:-kept])
            rest = masked[-kept:]
        target.write(rest)
    masked_path.chmod(path.stat().st_mode)
    masked_path.replace(path)


def _pieces(source: BinaryIO, kept: int) -> Iterator[bytes]:
    """Yield a file in pieces that begin with the last `kept` bytes of the one before."""
    rest = b""
    while piece := source.read(_PIECE_BYTES):
        yield rest + piece
        rest = (rest + piece)[-kept:]


def redacted(text: str, known: Secrets) -> str:
    """Mask the password and the private key in a message."""
    for secret, mask in _hidden(known).items():
        text = text.replace(secret, mask)
    return text


def _hidden(known: Secrets) -> Mapping[str, str]:
    """Secret → its mask. Each line of a key is a secret of its own: files in JSON encode line ends differently."""
    lines = () if known.certificate is None else known.certificate.key.splitlines()
    key = {line: _KEY_MASK for line in lines if line and not line.startswith("-")}
    return {known.password: _MASK, **key}


def collect(
    sources: Sequence[WorkDirectory], staging: Path, *, notes: Mapping[str, str], secrets: Secrets
) -> tuple[str, ...]:
    """Copy the raw files of all hosts and tare's own `notes` (name → text); return the names of all files.

    Directories of a run that failed early may be missing. If anything cannot be copied (a full disk, most likely),
    nothing is left in `staging`.
    """
    try:
        staging.mkdir(parents=True, exist_ok=True)
        at_once([partial(_bring, each, staging) for each in sources])
        for name, text in notes.items():
            (staging / name).write_text(text)
        redact(staging, secrets)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return raw_names(staging)


def _bring(source: WorkDirectory, staging: Path) -> None:
    there = source.host.run(["test", "-d", source.raw], timeout_s=_TIMEOUT_S, check=False)
    if there.code == 0:
        source.host.get(source.raw, staging)


def raw_names(staging: Path) -> tuple[str, ...]:
    """Return the files in `staging` by their relative paths."""
    return tuple(sorted(str(path.relative_to(staging)) for path in staging.rglob("*") if not path.is_dir()))
