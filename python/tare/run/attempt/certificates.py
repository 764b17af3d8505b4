"""The TLS certificate of a run's server, signed by an authority that is made for this run only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

from tare.databases import Certificate

_AUTHORITY = "tare run authority"
_AHEAD, _GOOD_FOR = timedelta(days=1), timedelta(days=30)
"""Clocks of other hosts and of virtual machines may be behind this host's clock."""


def new_certificate(password: str, now: datetime | None = None) -> Certificate:
    """Make a certificate with an ECDSA key on P-256, as public authorities use today; the same kind for every arm.

    The certificate names the loopback address only: a container's own address is unknown before its server starts,
    so clients verify the authority and not the host name. The authority's key is not stored. `password` locks the
    keystore, with algorithms that every Java 8 can read (update 301 was the first to support newer ones).
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    begins = (datetime.now(UTC) if now is None else now) - _AHEAD

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def unsigned(subject: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        dated = x509.CertificateBuilder(not_valid_before=begins, not_valid_after=begins + _AHEAD + _GOOD_FOR)
        of = dated.subject_name(named(subject)).issuer_name(named(_AUTHORITY))
        return of.public_key(key).serial_number(x509.random_serial_number())

    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    signs = x509.BasicConstraints(ca=True, path_length=0)
    authority = unsigned(_AUTHORITY, authority_key.public_key()).add_extension(signs, critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    server = (
        unsigned("tare server", key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=False)
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    signed = server.sign(authority_key, hashes.SHA256())
    lock = (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(2048)
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .hmac_hash(hashes.SHA1())  # noqa: S303 - the format's own
        .build(password.encode("ascii"))
    )
    return Certificate(
        authority=authority.sign(authority_key, hashes.SHA256()).public_bytes(pem).decode(),
        certificate=signed.public_bytes(pem).decode(),
        key=key.private_bytes(pem, pkcs8, serialization.NoEncryption()).decode(),
        keystore=pkcs12.serialize_key_and_certificates(b"server", key, signed, None, lock),
    )
