"""A real Keystone on loopback: users, application credentials, tokens and the catalogue, in SQLite."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.lacking import left_out
from tests.integration.load.servers import free_port

USER, PASSWORD, PROJECT, REGION = "bench", "CanaryPasswordOfKeystoneThatNobodyMayWrite", "demo", "RegionOne"
_LIMIT_S = 120.0
_SERVE = """
import sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from socketserver import ThreadingMixIn
from keystone.server.wsgi import initialize_public_application

class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

sys.argv, port = sys.argv[:1], int(sys.argv[1])
make_server("127.0.0.1", port, initialize_public_application(), Server, Handler).serve_forever()
"""


@dataclass(frozen=True)
class Keystone:
    """`url`: of version 3 of its API."""

    url: str

    def accepts(self, token: str | None) -> bool:
        """Whether it gave that token, and it has not expired."""
        if token is None:
            return False
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(f"{self.url}/auth/tokens", headers=headers), timeout=_LIMIT_S
            ) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False


def _programs() -> Path:
    """Where `scripts/openstack.sh build` keeps them."""
    cache = os.environ.get("TARE_OPENSTACK_CACHE") or Path.home() / ".cache" / "tare" / "openstack"
    made = sorted(Path(cache).glob("keystone-*/bin/keystone-manage"))
    return made[-1].parent if made else left_out("Keystone is not installed: scripts/openstack.sh build")


@contextmanager
def keystone() -> Iterator[Keystone]:
    """Running, with a user, a project and no services but itself; gone afterwards."""
    programs, at, port = _programs(), Path(tempfile.mkdtemp(prefix="tare-keystone-")), free_port()
    url = f"http://127.0.0.1:{port}/v3"
    configured = at / "keystone.conf"
    configured.write_text(
        f"[database]\nconnection = sqlite:///{at}/keystone.db\n"
        f"[fernet_tokens]\nkey_repository = {at}/tokens\n[credential]\nkey_repository = {at}/credentials\n"
        f"[fernet_receipts]\nkey_repository = {at}/receipts\n"
    )
    environment = {**os.environ, "OS_KEYSTONE_CONFIG_FILES": "keystone.conf", "OS_KEYSTONE_CONFIG_DIR": str(at)}
    for name in [name for name in environment if name.startswith("OS_") and "KEYSTONE" not in name]:
        del environment[name]
    try:
        for directory in ("tokens", "credentials", "receipts"):
            (at / directory).mkdir(mode=0o700)
        owner = [f"--keystone-user={os.geteuid()}", f"--keystone-group={os.getegid()}"]
        names = [f"--bootstrap-{name}={value}" for name, value in _bootstrap(url).items()]
        for words in (["db_sync"], ["fernet_setup", *owner], ["credential_setup", *owner], ["bootstrap", *names]):
            _manage(programs, configured, words, environment)
        with (at / "log").open("wb") as log:
            server = subprocess.Popen(
                [str(programs / "python"), "-c", _SERVE, str(port)], env=environment, stdout=log, stderr=log, cwd=at
            )
        try:
            _await(url, server, at / "log")
            yield Keystone(url)
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait(_LIMIT_S)
    finally:
        shutil.rmtree(at)


def _bootstrap(url: str) -> Mapping[str, str]:
    return {"username": USER, "password": PASSWORD, "project-name": PROJECT, "role-name": "admin",
            "service-name": "keystone", "region-id": REGION, "public-url": url}  # fmt: skip


def _manage(programs: Path, configured: Path, words: list[str], environment: Mapping[str, str]) -> None:
    argv = [str(programs / "keystone-manage"), "--config-file", str(configured), *words]
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False, cwd=configured.parent
    )
    assert done.returncode == 0, f"{words[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except OSError:
            assert server.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.2)
