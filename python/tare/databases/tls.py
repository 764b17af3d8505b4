"""Files in a server's run directory that hold the run's certificate."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases import ServerPlan

CERTIFICATE_FILE, KEY_FILE, KEYSTORE_FILE = "certificate.pem", "key.pem", "keystore.p12"


def certificate_files(plan: ServerPlan) -> Mapping[str, str]:
    """Name → PEM of certificate and key; empty without TLS."""
    made = plan.secrets.certificate
    if made is None:
        return {}
    return {CERTIFICATE_FILE: made.certificate, KEY_FILE: made.key}


def keystore_file(plan: ServerPlan) -> Mapping[str, bytes]:
    """Certificate and key for a JVM, locked by the run's password; empty without TLS."""
    made = plan.secrets.certificate
    return {} if made is None else {KEYSTORE_FILE: made.keystore}


def authority_of(plan: ServerPlan) -> str:
    """Authority's certificate in PEM, by which tare's own queries verify the server; empty without TLS."""
    made = plan.secrets.certificate
    return "" if made is None else made.authority
