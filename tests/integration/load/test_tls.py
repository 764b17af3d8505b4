"""tare-load over TLS against a real Redis, PostgreSQL and MariaDB: certificates that are right and wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.integration.load.servers import (
    LIMIT_S,
    NOBODY,
    Server,
    directory,
    free_port,
    job,
    mariadb,
    operation,
    password_file,
    postgresql,
    program,
    running,
    tare_load,
)


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: an authority's, and those of a server that is called localhost and nothing else."""

    ca: Path
    other_ca: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def certificates() -> Iterator[Certificates]:
    openssl = program("openssl", "openssl")
    with directory() as at:

        def make(*words: str) -> None:
            subprocess.run([openssl, *words], cwd=at, check=True, capture_output=True, timeout=LIMIT_S)

        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        for name in ("ca", "other"):
            make(
                "req",
                "-x509",
                *new,
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
                "-keyout",
                f"{name}.key",
                "-out",
                f"{name}.pem",
            )
        make("req", *new, "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request.pem")
        (at / "names").write_text("subjectAltName=DNS:localhost\n")
        signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        make("x509", "-req", "-in", "request.pem", *signer, "-out", "certificate.pem")
        key = at / "key.pem"
        key.chmod(0o600)
        yield Certificates(at / "ca.pem", at / "other.pem", at / "certificate.pem", key)


def of_nobody(key: Path) -> Path:
    """A copy that PostgreSQL may read, and takes for a secret."""
    copy = key.with_name("key-of-nobody.pem")
    shutil.copy(key, copy)
    copy.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(copy, NOBODY, NOBODY)
    return copy


@contextmanager
def redis(made: Certificates, of_clients: str = "no") -> Iterator[Server]:
    """One that speaks TLS only."""
    server, client = (program(name, "redis-server") for name in ("redis-server", "redis-cli"))
    with directory() as at:
        port = free_port()
        words = [server, "--port", "0", "--tls-port", str(port), "--tls-auth-clients", of_clients, "--save", ""]
        words += ["--tls-cert-file", str(made.certificate), "--tls-key-file", str(made.key)]
        words += ["--tls-ca-cert-file", str(made.ca), "--bind", "127.0.0.1"]
        with running(words, at, signal.SIGTERM, cwd=at) as process:
            own = ("--cacert", str(made.ca), "--cert", str(made.certificate), "--key", str(made.key))
            ask = (client, "-p", str(port), "--tls", *own, "--raw", "ping")
            deadline = time.monotonic() + LIMIT_S
            while subprocess.run(ask, capture_output=True, timeout=LIMIT_S, check=False).returncode:
                alive = process.poll() is None and time.monotonic() < deadline
                assert alive, (at / "log").read_text()
                time.sleep(0.1)
            yield Server(port, process, ask[:-1])


@pytest.fixture(scope="module", params=["redis", "postgresql", "mysql"])
def spoken(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[tuple[str, Server]]:
    """A protocol's name and a server of it with TLS."""
    made = certificates
    name: str = request.param
    if name == "redis":
        with redis(made) as server:
            yield name, server
    elif name == "postgresql":
        own = ("ssl=on", f"ssl_cert_file={made.certificate}", f"ssl_key_file={of_nobody(made.key)}")
        with postgresql(*own) as server:
            yield name, server
    else:
        with mariadb(f"--ssl-cert={made.certificate}", f"--ssl-key={made.key}") as server:
            server.query("ALTER USER empty REQUIRE SSL")
            yield name, server


def words(spoken: tuple[str, Server], at: Path, *more: str, host: str = "localhost") -> tuple[str, ...]:
    name, server = spoken
    send = "SET k v" if name == "redis" else "SELECT 1"
    login = {"redis": (), "postgresql": ("--user", "postgres"), "mysql": ("--user", "empty")}[name]
    path = job(at / "job.yaml", [operation("ask", send, rows=1)])
    return ("run", "--protocol", name, "--address", f"{host}:{server.port}", "--job", path, *login, *more)


def test_a_server_is_known_by_its_authority_and_its_name(
    spoken: tuple[str, Server], certificates: Certificates, tmp_path: Path
) -> None:
    known = ("--tls", "--ca", str(certificates.ca), "--operations", "400", "--connections", "4")
    run = tare_load(*words(spoken, tmp_path, *known, "--depth", "8"))
    assert (run.code, run.measure["right"]) == (0, 400), run.stderr
    assert run.document["plan"]["tls"] == {"verify": "full"}
    assert run.document["set_up"]["tls"]["suite"].startswith("TLSv1_3 ")
    handshake, connect = (
        run.document["set_up"]["tls"]["handshake_ns"]["p50"],
        run.document["set_up"]["connect_ns"]["p50"],
    )
    assert 0 < handshake < connect
    elsewhere = words(spoken, tmp_path, *known, host="127.0.0.1")
    run = tare_load(*elsewhere)
    assert run.code == 3
    assert run.stderr.endswith("bears another name; --tls-verify ca does not look at names")
    run = tare_load(*elsewhere, "--tls-verify", "ca", "--rate", "2000")
    assert (run.code, run.measure["right"]) == (0, 400), run.stderr


def test_a_write_of_any_length_arrives_whole(
    spoken: tuple[str, Server], certificates: Certificates, tmp_path: Path
) -> None:
    known = ("--tls", "--ca", str(certificates.ca), "--operations", "20", "--connections", "2")
    long = "x" * 300_000
    send = f"SET k {long}" if spoken[0] == "redis" else f"SELECT '{long}'"
    written = words(spoken, tmp_path, *known)
    job(tmp_path / "job.yaml", [operation("write", send, rows=1)])
    run = tare_load(*written)
    assert (run.code, run.measure["right"]) == (0, 20), run.stderr


def test_an_authority_s_own_certificate_at_a_server_is_refused_with_what_to_do(
    certificates: Certificates, tmp_path: Path
) -> None:
    itself = replace(certificates, certificate=certificates.ca, key=certificates.ca.with_name("ca.key"))
    with redis(itself) as server:
        own = ("--operations", "1", "--tls", "--ca", str(certificates.ca))
        run = tare_load(*words(("redis", server), tmp_path, *own))
    assert run.code == 3
    assert "have the authority sign a certificate for the server, or use --tls-verify none" in run.stderr


def test_a_server_of_another_authority_is_refused(
    spoken: tuple[str, Server], certificates: Certificates, tmp_path: Path
) -> None:
    other = words(spoken, tmp_path, "--operations", "10", "--tls", "--ca", str(certificates.other_ca))
    run = tare_load(*other)
    assert run.code == 3
    assert run.stderr.endswith("TLS: no authority of --ca has signed the server's certificate")
    run = tare_load(*other, "--tls-verify", "none")
    assert (run.code, run.measure["right"]) == (0, 10), run.stderr


def test_passwords_go_over_tls(certificates: Certificates, tmp_path: Path) -> None:
    made = certificates
    own = ("ssl=on", f"ssl_cert_file={made.certificate}", f"ssl_key_file={of_nobody(made.key)}")
    with postgresql(*own) as server:
        path = job(tmp_path / "job.yaml", [operation("ask", "SELECT 1", rows=1)])
        for user in ("md5", "scram", "clear"):
            run = tare_load(
                *("run", "--protocol", "postgresql", "--address", f"localhost:{server.port}", "--job", path),
                *("--user", user, "--password-file", password_file(tmp_path / "password")),
                *("--database", "postgres", "--operations", "5", "--tls", "--ca", str(made.ca)),
            )
            assert (run.code, run.measure["right"]) == (0, 5), run.stderr


def test_a_server_without_tls_is_told(tmp_path: Path) -> None:
    with postgresql() as server:
        run = tare_load(*words(("postgresql", server), tmp_path, "--tls", "--tls-verify", "none"))
    assert run.code == 3
    assert run.stderr.endswith("TLS: the server has none: set `ssl = on` there")


def test_who_the_server_is_must_be_told(tmp_path: Path) -> None:
    nobody = ("run", "--protocol", "redis", "--job", job(tmp_path / "job.yaml", [operation("ask", "PING")]))
    run = tare_load(*nobody, "--tls")
    assert (run.code, "give its authority's certificate with --ca FILE" in run.stderr) == (2, True)
    run = tare_load(*nobody, "--tls", "--ca", str(tmp_path / "job.yaml"))
    assert (run.code, run.stderr.endswith("there is no certificate in PEM in this file")) == (2, True)


def test_a_server_that_wants_a_certificate_of_its_clients_gets_one(
    certificates: Certificates, tmp_path: Path
) -> None:
    made = certificates
    own = ("--cert", str(made.certificate), "--key", str(made.key))
    known = ("--tls", "--ca", str(made.ca), "--operations", "40", "--connections", "4")
    with redis(made, "yes") as server:
        run = tare_load(*words(("redis", server), tmp_path, *known, *own))
        assert (run.code, run.measure["right"]) == (0, 40), run.stderr
        without = tare_load(*words(("redis", server), tmp_path, *known))
        assert without.code == 3
        assert without.stderr.endswith("wants a certificate of its clients: give one with --cert and --key")
    with mariadb(f"--ssl-cert={made.certificate}", f"--ssl-key={made.key}", f"--ssl-ca={made.ca}") as server:
        server.query("ALTER USER empty REQUIRE X509")
        run = tare_load(*words(("mysql", server), tmp_path, *known, *own))
        assert (run.code, run.measure["right"]) == (0, 40), run.stderr
        without = tare_load(*words(("mysql", server), tmp_path, *known))
        assert (without.code, "Access denied for user 'empty'" in without.stderr) == (3, True)
    mixed = ("--cert", str(made.ca), "--key", str(made.key))
    wrong = tare_load("run", "--protocol", "redis", "--job", str(tmp_path / "job.yaml"), *known, *mixed)
    assert (wrong.code, f"--cert {made.ca}: not that of --key" in wrong.stderr) == (2, True)
