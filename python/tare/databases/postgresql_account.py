"""What PostgreSQL keeps of a password, made here, so that the password itself is never sent."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode

_ITERATIONS = 4096
"""PostgreSQL's own number (SCRAM_SHA_256_DEFAULT_ITERATIONS)."""
_SALT_BYTES = 16


def verifier(password: str, salt: bytes | None = None) -> str:
    """The SCRAM-SHA-256 verifier of RFC 5802 as pg_authid holds it; a random salt where none is given."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(server)}"


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()
