"""A server with a certificate speaks TLS alone with who comes by the network; one without is started as ever."""

from __future__ import annotations

import pytest

from tare.databases import Certificate, Secrets, ServerPlan
from tare.databases.abilities import TLS
from tare.databases.registry import DATABASES
from tare.errors import StudyError

CERTIFICATE = Certificate(authority="AUTHORITY", certificate="CERTIFICATE", key="KEY")
TOLD = {
    "mariadb": ("ssl_cert = /run/tare/certificate.pem", "ssl_key = /run/tare/key.pem", " REQUIRE SSL;"),
    "mysql": ("ssl_cert = /run/tare/certificate.pem", "ssl_key = /run/tare/key.pem", " REQUIRE SSL;"),
    "postgresql": ("ssl = 'on'", "ssl_cert_file = '/run/tare/certificate.pem'", "\nhostssl tare tare all"),
    "redis": ("port 0\n", "tls-port 7001\n", "tls-key-file /run/tare/key.pem", "tls-auth-clients no"),
    "valkey": ("port 0\n", "tls-port 7001\n", "tls-key-file /run/tare/key.pem", "tls-auth-clients no"),
}
FILES = {
    "mariadb": "ssl_cert",
    "mysql": "ssl_key",
    "postgresql": "ssl",
    "redis": "tls-cert-file",
    "valkey": "tls-port",
}


def plan(certificate: Certificate | None, **settings: str) -> ServerPlan:
    secrets = Secrets("tare", "0123456789abcdef", certificate)
    return ServerPlan("/data", "/run/tare", "127.0.0.1", 7001, settings, secrets)


def test_each_that_can_is_tried_here() -> None:
    assert set(TOLD) == TLS


@pytest.mark.parametrize("name", sorted(TLS))
def test_a_certificate_is_given_to_the_server_alone(name: str) -> None:
    files = DATABASES[name].serve(plan(CERTIFICATE)).files
    assert (files["certificate.pem"], files["key.pem"]) == ("CERTIFICATE", "KEY")
    assert "AUTHORITY" not in files.values()
    for line in TOLD[name]:
        assert any(line in file for file in files.values()), (line, files)


@pytest.mark.parametrize("name", sorted(TLS))
def test_without_one_nothing_is_said_of_tls(name: str) -> None:
    files = DATABASES[name].serve(plan(None)).files
    assert not {"certificate.pem", "key.pem"} & set(files)
    assert not any(word in file for file in files.values() for word in ("ssl", "SSL", "tls"))


@pytest.mark.parametrize("name", sorted(TLS))
def test_files_of_certificates_are_tare_s(name: str) -> None:
    with pytest.raises(StudyError, match="reserved for tare"):
        DATABASES[name].serve(plan(CERTIFICATE, **{FILES[name]: "x"}))
