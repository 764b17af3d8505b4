"""The reader of the engine's statistics, run against an engine that is a few lines of Python."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tare.monitors.docker_stats import READER

FRAME = {"read": "2026-01-01T00:00:01Z"}


@contextmanager
def engine(*, running: bool, state: Mapping[str, bool] | None = None) -> Iterator[str]:
    """Gives one frame of each container and ends it; it says of each that it runs, is not there, or `state`."""
    fields = {"State": {"Running": running} if state is None else state}

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_frame = "/stats" in self.path
            self.send_response(200 if is_frame or running else 404)
            self.end_headers()
            self.wfile.write(json.dumps(FRAME if is_frame else fields).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def reader(address: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    (directory / "containers").write_text("c0ffee\n")
    argv = [sys.executable, "-I", "-S", str(READER), address, str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


def test_statistics_that_end_while_the_container_runs_are_a_failure(tmp_path: Path) -> None:
    with engine(running=True) as address, reader(address, tmp_path) as program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert json.loads(out)["frame"] == FRAME
    assert "the engine ended the statistics of c0ffee, which is still running" in err


def test_an_answer_of_another_form_is_a_failure(tmp_path: Path) -> None:
    with engine(running=True, state={}) as address, reader(address, tmp_path) as program:
        _, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "KeyError: 'Running'" in err


def test_an_engine_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    with engine(running=True) as address:
        pass
    with reader(address, tmp_path) as program:
        _, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "ConnectionRefusedError" in err


def test_the_end_of_a_container_is_none(tmp_path: Path) -> None:
    with engine(running=False) as address, reader(address, tmp_path) as program:
        assert program.stdout is not None
        assert json.loads(program.stdout.readline())["frame"] == FRAME
        try:
            program.wait(0.5)
        except subprocess.TimeoutExpired:
            program.terminate()
        assert program.wait(60) == 0
