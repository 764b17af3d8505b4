"""A server with a certificate speaks TLS alone with who comes by the network; one without is started as ever."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tare.databases import Certificate, Secrets, ServerPlan
from tare.databases.abilities import TLS
from tare.databases.cassandra import cql_query
from tare.databases.registry import DATABASES
from tare.errors import StudyError
from tare.run.attempt.certificates import new_certificate
from tare.sites import Completed

CERTIFICATE = Certificate(authority="AUTHORITY", certificate="CERTIFICATE", key="KEY", keystore=b"KEYSTORE")
_JVM = (
    'client_encryption_options: {"enabled": true, "optional": false, "keystore": "/run/tare/keystore.p12"',
    '"store_type": "PKCS12"',
)
TOLD = {
    "cassandra": _JVM,
    "cassandra-5": _JVM,
    "ferretdb": (
        "\n--listen-addr=-\n--listen-tls=127.0.0.1:7001\n",
        "\n--listen-tls-cert-file=/run/tare/certificate.pem\n--listen-tls-key-file=/run/tare/key.pem\n",
    ),
    "mariadb": ("ssl_cert = /run/tare/certificate.pem", "ssl_key = /run/tare/key.pem", " REQUIRE SSL;"),
    "mysql": ("ssl_cert = /run/tare/certificate.pem", "ssl_key = /run/tare/key.pem", " REQUIRE SSL;"),
    "postgresql": ("ssl = 'on'", "ssl_cert_file = '/run/tare/certificate.pem'", "\nhostssl tare tare all"),
    "redis": ("port 0\n", "tls-port 7001\n", "tls-key-file /run/tare/key.pem", "tls-auth-clients no"),
    "valkey": ("port 0\n", "tls-port 7001\n", "tls-key-file /run/tare/key.pem", "tls-auth-clients no"),
}
FILES = {
    "cassandra": "client_encryption_options",
    "cassandra-5": "client_encryption_options",
    "ferretdb": "ssl_cert_file",
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
    command = DATABASES[name].serve(plan(CERTIFICATE))
    files = command.files
    if TOLD[name] is _JVM:
        assert command.binary_files == {"keystore.p12": b"KEYSTORE"}
    else:
        assert (files["certificate.pem"], files["key.pem"]) == ("CERTIFICATE", "KEY")
        assert command.binary_files == {}
    assert "AUTHORITY" not in files.values()
    for line in TOLD[name]:
        assert any(line in file for file in files.values()), (line, files)


@pytest.mark.parametrize("name", sorted(TLS))
def test_without_one_nothing_is_said_of_tls(name: str) -> None:
    command = DATABASES[name].serve(plan(None))
    assert command.binary_files == {}
    assert not {"certificate.pem", "key.pem"} & set(command.files)
    assert not any(word in file for file in command.files.values() for word in ("ssl", "SSL", "tls", "encryption"))


@pytest.mark.parametrize("name", sorted(TLS))
def test_files_of_certificates_are_tare_s(name: str) -> None:
    with pytest.raises(StudyError, match="reserved for tare"):
        DATABASES[name].serve(plan(CERTIFICATE, **{FILES[name]: "x"}))


def test_postgresql_behind_ferretdb_is_reached_by_its_socket_in_clear_text() -> None:
    assert "ssl" not in DATABASES["ferretdb"].serve(plan(CERTIFICATE)).files["postgresql.conf"]


@pytest.mark.parametrize("name", ["cassandra", "cassandra-5", "ferretdb"])
@pytest.mark.parametrize(("certificate", "authority"), [(CERTIFICATE, "AUTHORITY"), (None, "")])
def test_tare_s_own_queries_know_the_authority(name: str, certificate: Certificate | None, authority: str) -> None:
    argvs = []

    def inside(argv: Sequence[str], _timeout_s: float, _stdin: bytes) -> Completed:
        argvs.append(tuple(argv))
        return Completed(tuple(argv), 1, b"", b"")

    assert DATABASES[name].ready(plan(certificate), inside) is False
    assert argvs[0][4:7] == ("127.0.0.1", "7001", authority)


def test_a_query_over_tls_refuses_a_server_of_another_authority(tmp_path: Path) -> None:
    one, other = (new_certificate("0123") for _ in range(2))
    (tmp_path / "chain").write_text(one.certificate + one.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "chain")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def accept() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(connection, server_side=True) as encrypted:
                    encrypted.sendall(struct.pack(">BBhBi", 0x84, 0, 0, 0, 8) + struct.pack(">ih", 1, 2) + b"no")
                    while encrypted.recv(4096):  # what is unread when it closes would reset the connection
                        pass

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        with pytest.raises(SystemExit, match="the server refuses: no"):
            cql_query.main("127.0.0.1", str(port), one.authority, "SELECT")
        with pytest.raises(SystemExit, match="certificate verify failed"):
            cql_query.main("127.0.0.1", str(port), other.authority, "SELECT")
        thread.join(60)
