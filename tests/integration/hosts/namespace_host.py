"""A test host spoken to without SSH: a LocalHost in a Python process that stands in the host's namespaces."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from tare.errors import TareError
from tare.sites import Completed, Host, Output, Process
from tools import hosts
from tools.lab import PATH, TestHost

_SERVE = "from tests.integration.hosts.namespace_host import serve; serve()"


class NamespaceHost(Host):
    """The five methods of `Host`, each a question to that process; one at a time."""

    def __init__(self, host: TestHost) -> None:
        self.name = host.name
        init = str(hosts.init_of(host))
        argv = ["nsenter", "--all", "--wd=/", "--target", init, "--", "/usr/bin/python3", "-c", _SERVE]
        root = str(Path(__file__).parents[3])
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": PATH, "PYTHONPATH": f"{root}/python:{root}"},
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        return cast("Completed", self._ask("run", argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check))

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        return cast("Process", self._ask("start", argv, output=output, env=env, announce=announce))

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        self._ask("put", source if isinstance(source, bytes) else source.read_bytes(), target, mode=mode)

    def get(self, source: str, target: Path) -> None:
        packed = self._ask("pack", source)
        if isinstance(packed, bytes):
            target.write_bytes(packed)
            return
        with tarfile.open(fileobj=BytesIO(packed[0])) as tar:
            tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # Python 3.11.4
            tar.extractall(target)

    def read(self, path: str) -> bytes | None:
        return cast("bytes | None", self._ask("read", path))

    def _ask(self, what: str, *words: Any, announce: Callable[[Process], None] | None = None, **named: Any) -> Any:
        with self._lock:
            self._send((what, words, named, announce is not None))
            kind, answer = self._receive()
            if kind == "announce":
                assert announce is not None
                announce(answer)
                self._send(True)
                kind, answer = self._receive()
        if kind == "error":
            raise answer
        return answer

    def _send(self, what: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(what, self._process.stdin)
        self._process.stdin.flush()

    def _receive(self) -> tuple[str, Any]:
        assert self._process.stdout is not None
        kind, answer = pickle.load(self._process.stdout)
        return kind, answer


def serve() -> None:
    """The other end: until its standard input ends."""
    from tare.sites.local import LocalHost

    host = LocalHost()

    def answer(kind: str, what: object) -> None:
        pickle.dump((kind, what), sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def announce(process: Process) -> None:
        answer("announce", process)
        pickle.load(sys.stdin.buffer)

    while True:
        try:
            what, words, named, announced = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if what == "pack":
                done = _pack(Path(words[0]))
            else:
                done = getattr(host, what)(*words, **named, **({"announce": announce} if announced else {}))
        except TareError as error:
            answer("error", type(error)(str(error)))
        else:
            answer("done", done)


def _pack(path: Path) -> bytes | tuple[bytes]:
    from tare.errors import RunFailed

    if not path.exists():
        raise RunFailed(f"{path} is not there")
    if not path.is_dir():
        return path.read_bytes()
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(path, arcname=".")
    return (packed.getvalue(),)
