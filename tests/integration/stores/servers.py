"""Servers of the tests' own on loopback: a PostgreSQL that asks for passwords and can be stopped, and an S3."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.lacking import left_out
from tests.integration.load.servers import LIMIT_S, NOBODY, await_answer, free_port, program, running

PASSWORD = "corr:ect horse\\"
DATABASE = "benchmarks"


@dataclass
class DatabaseServer:
    """`tare` may make schemas in the database and has a password; `postgres` needs none."""

    at: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def _drop(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}

    @property
    def _client(self) -> tuple[str, ...]:
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres")
        return (program("psql", "postgresql"), "-XAtq", *where, "-d", "postgres", "-c")

    @property
    def pgpass(self) -> Path:
        """The file that PGPASSFILE is to name."""
        return self.at / "pgpass"

    def make(self) -> None:
        """An empty cluster."""
        if self._drop:
            os.chown(self.at, NOBODY, NOBODY)
        words = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C", "--data-checksums"]
        made = [program("initdb", "postgresql"), "-D", str(self.at / "data"), *words]
        subprocess.run(made, check=True, capture_output=True, timeout=LIMIT_S, **self._drop)
        rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (self.at / "data" / "pg_hba.conf").write_text(rules)
        self.start()
        quoted = PASSWORD.replace("'", "''")
        for text in (
            f"CREATE USER tare PASSWORD '{quoted}'",
            f"CREATE USER reader PASSWORD '{quoted}'",
            f"CREATE DATABASE {DATABASE} OWNER tare",
        ):
            self.query(text)
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        self.pgpass.write_text(f"127.0.0.1:{self.port}:*:*:{escaped}\n")
        self.pgpass.chmod(0o600)

    def start(self) -> None:
        """Until it answers."""
        words = [program("postgres", "postgresql"), "-D", str(self.at / "data"), "-p", str(self.port)]
        words += ["-k", str(self.at), "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1"]
        with (self.at / "log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, start_new_session=True, cwd=self.at, **self._drop
            )
        await_answer(self._client, self.process, self.at / "log")

    def stop(self) -> None:
        """At once: connections are cut."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=LIMIT_S)

    def query(self, text: str, database: str = "postgres") -> str:
        """What psql prints."""
        words = [*self._client, text]
        words[words.index("postgres", words.index("-d"))] = database
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def url(self, raw: str, name: str, user: str = "tare", database: str = DATABASE) -> str:
        """Of a store in it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}?store={name}&raw={raw}"


@contextmanager
def database_server(below: Path | None = None) -> Iterator[DatabaseServer]:
    """Running; gone afterwards with all that it held. `below`: the directory to keep it in."""
    at = Path(tempfile.mkdtemp(prefix="tare-postgresql-", dir=below))
    at.chmod(0o755)
    server = DatabaseServer(at, free_port())
    try:
        server.make()
        yield server
    finally:
        server.stop()
        shutil.rmtree(at)


BUCKET = "results"


@dataclass(frozen=True)
class BucketServer:
    """A versitygw: objects are files below `at`/objects, which tests may damage."""

    at: Path
    port: int
    environment: Mapping[str, str]

    @property
    def objects(self) -> list[Path]:
        """Those of tare, whole ones alone."""
        return sorted((self.at / "objects" / BUCKET).rglob("sha256/??/*"))


def versitygw() -> str:
    """Where `scripts/s3.sh build` keeps it."""
    cache = os.environ.get("TARE_S3_CACHE") or Path.home() / ".cache" / "tare" / "s3"
    made = sorted(Path(cache).glob("versitygw-*[0-9]"))
    return str(made[-1]) if made else left_out("versitygw is not built: scripts/s3.sh build")


@contextmanager
def bucket_server(below: Path | None = None) -> Iterator[BucketServer]:
    """Running, with a bucket; gone afterwards. `below`: the directory to keep it in."""
    at, port = Path(tempfile.mkdtemp(prefix="tare-s3-", dir=below)), free_port()
    (at / "objects" / BUCKET).mkdir(parents=True)
    (at / "users").mkdir()
    root = {"ROOT_ACCESS_KEY": "root-key", "ROOT_SECRET_KEY": "root-secret"}
    words = [
        versitygw(),
        "--port",
        f"127.0.0.1:{port}",
        "--iam-dir",
        str(at / "users"),
        "posix",
        str(at / "objects"),
    ]
    mine = {"AWS_ACCESS_KEY_ID": "root-key", "AWS_SECRET_ACCESS_KEY": "root-secret", "AWS_REGION": "us-east-1"}
    try:
        with running(words, at, signal.SIGTERM, env={**os.environ, **root}):
            _await_port(port, at / "log")
            yield BucketServer(at, port, {**mine, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
    finally:
        shutil.rmtree(at)


def _await_port(port: int, log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)
