"""The certificate of a run: another one each time, signed by its authority, and its key in no raw file."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from tare.run.attempt.certificates import new_certificate
from tare.run.attempt.raw_files import new_secrets, redact, redacted

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def test_the_authority_has_signed_it_for_a_time_that_clocks_may_err_by(tmp_path: Path) -> None:
    made = new_certificate("0123", NOW)
    authority, server = (x509.load_pem_x509_certificate(pem.encode()) for pem in (made.authority, made.certificate))
    server.verify_directly_issued_by(authority)
    assert (NOW - server.not_valid_before_utc).days == 1
    assert (server.not_valid_after_utc - NOW).days == 30
    assert isinstance(server.public_key(), ec.EllipticCurvePublicKey)
    assert server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    for name, pem in (("certificate", made.certificate), ("key", made.key)):
        (tmp_path / name).write_text(pem)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "certificate", tmp_path / "key")


def test_a_jvm_is_given_the_same_locked_by_the_password() -> None:
    made = new_certificate("0123", NOW)
    key, certificate, others = pkcs12.load_key_and_certificates(made.keystore, b"0123")
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert certificate == x509.load_pem_x509_certificate(made.certificate.encode())
    assert key.public_key() == certificate.public_key()
    assert others == []
    with pytest.raises(ValueError, match="password"):
        pkcs12.load_key_and_certificates(made.keystore, b"3210")


def test_each_run_has_another_one_and_a_study_without_tls_none() -> None:
    one, other = (new_secrets(tls=True).certificate for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.key != other.key
    assert one.authority != other.authority
    assert new_secrets().certificate is None
    assert one.key not in repr(one)
    assert repr(one.keystore) not in repr(one)


def test_the_key_stands_in_no_raw_file_and_no_message(tmp_path: Path) -> None:
    known = new_secrets(tls=True)
    assert known.certificate is not None
    lines = [line for line in known.certificate.key.splitlines() if not line.startswith("-")]
    described = json.dumps({"files": {"key.pem": known.certificate.key, "conf": known.password}})
    (tmp_path / "sut.command.json").write_text(described)
    (tmp_path / "certificate.pem").write_text(known.certificate.certificate)
    redact(tmp_path, known)
    kept = (tmp_path / "sut.command.json").read_text()
    assert not any(line in kept for line in (*lines, known.password))
    assert json.loads(kept)["files"]["conf"] == "[password]"
    assert (tmp_path / "certificate.pem").read_text() == known.certificate.certificate
    assert redacted(f"{lines[0]} {known.password}", known) == "[key] [password]"
