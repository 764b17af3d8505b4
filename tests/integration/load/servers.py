"""Real servers for tare-load on loopback, without an engine; each has a directory of its own, gone afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.lacking import left_out

NOBODY = 65534
"""PostgreSQL refuses to run as root."""
PASSWORD = "it's a \\ secret"
LIMIT_S = 60


@dataclass(frozen=True)
class Server:
    """A server that runs, and how to speak with it beside tare-load. `at`: its directory."""

    port: int
    process: subprocess.Popen[bytes]
    client: tuple[str, ...]
    at: Path = Path()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """All its processes at once: sessions of PostgreSQL have process groups of their own."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            os.kill(pid, signal.SIGKILL)

    def query(self, text: str) -> str:
        """What the server's own client prints."""
        done = subprocess.run([*self.client, text], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@dataclass(frozen=True)
class LoadRun:
    """What one call of tare-load said."""

    code: int
    stderr: str
    document: dict[str, Any]

    @property
    def measure(self) -> dict[str, Any]:
        measure: dict[str, Any] = self.document["measure"]
        return measure


def program(name: str, package: str) -> str:
    """Where a program of a Debian package is."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), "/usr/sbin", "/usr/bin"]
    found = shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))
    return found or left_out(f"{name} is not installed: scripts/packages.sh test, or apt-get install {package}")


def tare_load(*words: str, within_s: float = LIMIT_S) -> LoadRun:
    """Call the installed tare-load; `document` is empty where it printed none."""
    done = subprocess.run(["tare-load", *words], capture_output=True, text=True, timeout=within_s, check=False)
    return LoadRun(done.returncode, done.stderr.strip(), json.loads(done.stdout or "{}"))


def job(at: Path, operations: Sequence[dict[str, Any]], **generators: Any) -> str:
    """Write a job file."""
    at.write_text(json.dumps({"format": 1, "generators": generators, "operations": list(operations)}))
    return str(at)


def operation(name: str, *statements: str, rows: int = 0) -> dict[str, Any]:
    """Of the statements, each must touch or give `rows` rows."""
    return {"name": name, "steps": [{"send": text, "expect": {"rows": rows}} for text in statements]}


@contextmanager
def directory() -> Iterator[Path]:
    """One that a server without rights may enter."""
    at = Path(tempfile.mkdtemp(prefix="tare-load-"))
    at.chmod(0o755)
    try:
        yield at
    finally:
        shutil.rmtree(at)


@contextmanager
def running(words: Sequence[str], at: Path, stop: int, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The program, ended by the signal `stop`, at which it leaves nothing behind."""
    with (at / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, **more)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(stop)
            process.wait(timeout=LIMIT_S)


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def await_answer(client: Sequence[str], process: subprocess.Popen[bytes], log: Path) -> None:
    """Until `SELECT 1` is answered."""
    deadline = time.monotonic() + LIMIT_S
    while subprocess.run([*client, "SELECT 1"], capture_output=True, timeout=LIMIT_S, check=False).returncode:
        alive = process.poll() is None and time.monotonic() < deadline
        assert alive, log.read_text(errors="replace")
        time.sleep(0.1)


@contextmanager
def postgresql(*settings: str) -> Iterator[Server]:
    """One whose users `trusted`, `md5`, `scram` and `clear` log in as they are called."""
    postgres, initdb, psql = (program(name, "postgresql") for name in ("postgres", "initdb", "psql"))
    drop: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with directory() as at:
        if drop:
            os.chown(at, NOBODY, NOBODY)
        data, port = at / "data", free_port()
        made = [
            initdb,
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale",
            "C",
        ]
        subprocess.run(made, check=True, capture_output=True, timeout=LIMIT_S, **drop)
        ways = (("md5", "md5"), ("scram", "scram-sha-256"), ("clear", "password"), ("all", "trust"))
        (data / "pg_hba.conf").write_text(
            "".join(f"host all {user} 127.0.0.1/32 {way}\nlocal all {user} {way}\n" for user, way in ways)
        )
        words = [postgres, "-D", str(data), "-p", str(port), "-k", str(at), "-c", "fsync=off"]
        words += ["-c", "listen_addresses=127.0.0.1", *(word for setting in settings for word in ("-c", setting))]
        with running(words, at, signal.SIGQUIT, cwd=at, **drop) as process:
            client = (psql, "-XAtq", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-c")
            await_answer(client, process, at / "log")
            server = Server(port, process, client, at)
            quoted = PASSWORD.replace("'", "''")
            for user, method in (("md5", "md5"), ("scram", "scram-sha-256"), ("clear", "scram-sha-256")):
                server.query(f"SET password_encryption = '{method}'; CREATE USER {user} PASSWORD '{quoted}'")
            yield server


@contextmanager
def mariadb(*options: str) -> Iterator[Server]:
    """One with a database `test`, whose users log in with a password, without one, and by ed25519."""
    mariadbd, install, client = (
        program(name, "mariadb-server") for name in ("mariadbd", "mariadb-install-db", "mariadb")
    )
    with directory() as at:
        data, port = at / "data", free_port()
        # In a shared one, another server that starts would remove this one's temporary tables.
        user = ["--no-defaults", f"--tmpdir={at}", *(["--user=root"] if os.geteuid() == 0 else [])]
        made = [install, *user, f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        done = subprocess.run(made, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        words = [
            mariadbd,
            *user,
            f"--datadir={data}",
            f"--port={port}",
            "--bind-address=127.0.0.1",
            "--skip-log-bin",
        ]
        words += [f"--socket={at}/socket", f"--pid-file={at}/pid", "--innodb-flush-log-at-trx-commit=0", *options]
        words += ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M", "--plugin-load-add=auth_ed25519"]
        with running(words, at, signal.SIGKILL, cwd=at) as process:
            ask = (client, "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-BN", "-e")
            await_answer(ask, process, at / "log")
            server = Server(port, process, ask, at)
            quoted = PASSWORD.replace("\\", "\\\\").replace("'", "''")
            server.query(
                f"CREATE DATABASE test; CREATE USER native IDENTIFIED BY '{quoted}', empty IDENTIFIED BY '';"
                f"CREATE USER ed25519 IDENTIFIED VIA ed25519 USING PASSWORD('{quoted}');"
                "GRANT ALL ON test.* TO native, empty, ed25519"
            )
            yield server


@contextmanager
def redis(*settings: str) -> Iterator[Server]:
    """One that keeps nothing, with a Unix socket `socket` in its directory."""
    redis_server, client = (program(name, "redis-server") for name in ("redis-server", "redis-cli"))
    with directory() as at:
        port = free_port()
        words = [redis_server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(at)]
        words += ["--unixsocket", str(at / "socket"), *settings]
        with running(words, at, signal.SIGTERM, cwd=at) as process:
            ask = (client, "-p", str(port), "info")
            deadline = time.monotonic() + LIMIT_S
            while not (at / "socket").exists():
                alive = process.poll() is None and time.monotonic() < deadline
                assert alive, (at / "log").read_text()
                time.sleep(0.05)
            yield Server(port, process, ask, at)


def password_file(at: Path, password: str = PASSWORD) -> str:
    """As `--password-file` reads it."""
    at.write_text(password + "\n")
    return str(at)
