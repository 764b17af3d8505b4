"""The run's certificate as servers are given it: files in their run directory."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases import ServerPlan

CERTIFICATE_FILE, KEY_FILE, KEYSTORE_FILE = "certificate.pem", "key.pem", "keystore.p12"


def certificate_files(plan: ServerPlan) -> Mapping[str, str]:
    """Name → PEM; empty where the server speaks no TLS."""
    made = plan.secrets.certificate
    if made is None:
        return {}
    return {CERTIFICATE_FILE: made.certificate, KEY_FILE: made.key}


def keystore_file(plan: ServerPlan) -> Mapping[str, bytes]:
    """The same for a JVM, locked by the run's password."""
    made = plan.secrets.certificate
    return {} if made is None else {KEYSTORE_FILE: made.keystore}


def authority_of(plan: ServerPlan) -> str:
    """The authority's certificate in PEM, by which tare's own queries know the server; empty in clear text."""
    made = plan.secrets.certificate
    return "" if made is None else made.authority
