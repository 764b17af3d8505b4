"""SSH keys that tare makes: one to log in with, and one host key for each machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True)
class SshKey:
    """An Ed25519 key in OpenSSH's formats. `public`: one line without a comment."""

    public: str
    private: str = field(repr=False)


def new_key() -> SshKey:
    """Make a key from the system's random numbers, without a passphrase."""
    key = Ed25519PrivateKey.generate()
    return SshKey(
        public=key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(),
        private=key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode(),
    )
