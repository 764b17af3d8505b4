"""The run's certificate as servers are given it: files in PEM in their run directory."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases import ServerPlan

CERTIFICATE_FILE, KEY_FILE = "certificate.pem", "key.pem"


def certificate_files(plan: ServerPlan) -> Mapping[str, str]:
    """Name → PEM; empty where the server speaks no TLS."""
    made = plan.secrets.certificate
    if made is None:
        return {}
    return {CERTIFICATE_FILE: made.certificate, KEY_FILE: made.key}
