"""Servers of `bench.load`, each on one CPU, in a directory that goes with them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
"""PostgreSQL refuses to run as root."""
START_S = 60
ROWS = 100_000


@dataclass(frozen=True)
class Lab:
    """The program that is measured, and where: servers and clients have a CPU each."""

    load: Path
    scratch: Path
    server_cpu: int
    client_cpu: int

    def written(self, name: str, text: str) -> str:
        """The path of a new file."""
        path = self.scratch / name
        path.write_text(text)
        return str(path)


@dataclass(frozen=True)
class Server:
    """One that answers."""

    port: int
    process: subprocess.Popen[bytes]

    def signal_all(self, number: int) -> None:
        """To its process and its children, as PostgreSQL has one for each connection."""
        own = str(self.process.pid)
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = stat.read_text().rpartition(")")[2].split()[1]
                if own in (stat.parent.name, parent):
                    os.kill(int(stat.parent.name), number)
            except (FileNotFoundError, ProcessLookupError):
                continue


def missing(programs: Sequence[str]) -> list[str]:
    """Those that are not installed."""
    return [name for name in programs if shutil.which(name, path=search_path()) is None]


def program(name: str) -> str:
    """Its whole path, where it is installed, as it may be started from another directory."""
    path = shutil.which(name, path=search_path())
    return name if path is None else str(Path(path).absolute())


def search_path() -> str:
    """With the places where Debian keeps servers, and first `$PEERS`, directories of generators built elsewhere."""
    places = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return os.pathsep.join(
        [*filter(None, [os.environ.get("PEERS")]), *places, "/usr/sbin", os.environ.get("PATH", os.defpath)]
    )


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def redis(cpu: int) -> Iterator[Server]:
    """A Redis without persistence, holding one value of 100 B, for up to 20,000 clients."""
    port = free_port()
    words = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--maxclients", "20000"]
    with _scratch() as at, _running(words, cpu, at, signal.SIGTERM) as process:
        _until(lambda: _is_set(port), process)
        yield Server(port, process)


def _is_set(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(b"SET key:1 " + b"x" * 100 + b"\r\n")
            return line.recv(16) == b"+OK\r\n"
    except ConnectionRefusedError:
        return False


@contextmanager
def mariadb(cpu: int) -> Iterator[Server]:
    """A MariaDB with a table of sysbench, filled by sysbench."""
    port = free_port()
    with _scratch() as at:
        user = ["--user=root"] if os.geteuid() == 0 else []
        options = ["--no-defaults", f"--tmpdir={at}", *user, f"--datadir={at}/data"]
        auth = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        _call("mariadb-install-db", *options, *auth)
        words = ["mariadbd", *options, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={at}/socket"]
        words += [f"--pid-file={at}/pid", "--skip-log-bin", "--innodb-buffer-pool-size=256M"]
        with _running(words, cpu, at, signal.SIGTERM) as process:
            ask = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-e", "CREATE DATABASE sbtest"]
            _until(lambda: _works(ask), process)
            _call("sysbench", *sysbench_words(port), "prepare")
            yield Server(port, process)


def sysbench_words(port: int) -> list[str]:
    """Of the script and its table."""
    return ["oltp_point_select", *sysbench_server(port), "--tables=1", f"--table-size={ROWS}"]


def sysbench_server(port: int) -> list[str]:
    """Where its server is."""
    return ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=root"]


@contextmanager
def postgresql(cpu: int) -> Iterator[Server]:
    """A PostgreSQL with pgbench's tables at scale 1: 100,000 accounts."""
    port = free_port()
    with _scratch() as at:
        drop = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
        if drop:
            os.chown(at, NOBODY, NOBODY)
        _call("initdb", "-D", f"{at}/data", "-U", "postgres", "-A", "trust", "--no-sync", drop=drop)
        words = ["postgres", "-D", f"{at}/data", "-p", str(port), "-k", str(at), "-c", "listen_addresses=127.0.0.1"]
        with _running(words, cpu, at, signal.SIGINT, drop) as process:
            where = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
            _until(lambda: _works(["pg_isready", *where]), process)
            _call("pgbench", *where, "-i", "-q", "postgres")
            yield Server(port, process)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch)
        at.chmod(0o755)
        yield at


@contextmanager
def _running(
    words: Sequence[str], cpu: int, at: Path, stop: int, drop: Mapping[str, int] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    command = ["taskset", "-c", str(cpu), shutil.which(words[0], path=search_path()) or words[0], *words[1:]]
    user = (drop or {}).get("user")
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=at, stdout=quiet, stderr=quiet, user=user, group=user)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(stop)
        process.wait(timeout=START_S)


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while not holds():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError(f"{process.args!r} does not answer")
        time.sleep(0.05)


def _works(words: Sequence[str]) -> bool:
    return subprocess.run(words, capture_output=True, timeout=START_S, check=False).returncode == 0


def _call(name: str, *words: str, drop: Mapping[str, int] | None = None) -> None:
    user = (drop or {}).get("user")
    command = [shutil.which(name, path=search_path()) or name, *words]
    subprocess.run(command, capture_output=True, timeout=300, check=True, user=user, group=user)
