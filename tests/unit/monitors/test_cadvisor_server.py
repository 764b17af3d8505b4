"""The program that runs cAdvisor and Prometheus, with two small programs in their place."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tare.monitors.cadvisor import SERVER

PATIENCE_S = 60.0
SLEEPS = "import time; time.sleep(600)"
ENDS = "import sys; sys.exit('no such hierarchy')"
ANSWERS = """
import http.server, pathlib, sys
options = dict(word.split("=", 1) for word in sys.argv[1:])
pathlib.Path(options["--storage.tsdb.path"]).mkdir()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": {"result": [{"value": [0, "1"]}]}}')
host, port = options["--web.listen-address"].split(":")
http.server.HTTPServer((host, int(port)), Answer).serve_forever()
"""


def program(path: Path, text: str) -> str:
    # Not the interpreter in the first line: its path may have a blank.
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS -c {shlex.quote(text)} "$@"\n')
    path.chmod(0o755)
    return str(path)


Started = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Started]:
    """Starts it with such a program for cAdvisor; what is left of its group afterwards is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(cadvisor: str) -> subprocess.Popen[str]:
        (tmp_path / "pids").write_text(f"{os.getpid()} sut\n")
        programs = (program(tmp_path / "eye", cadvisor), program(tmp_path / "scraper", ANSWERS))
        argv = [sys.executable, "-I", "-S", str(SERVER), str(tmp_path), *programs, "1", "600"]
        started.append(subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield begin
    for server in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate(timeout=PATIENCE_S)


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def groups(directory: Path) -> dict[str, str]:
    """The noted names; none while the file is being written."""
    try:
        texts: dict[str, str] = json.loads((directory / "server.json").read_text())["groups"]
    except ValueError:
        return {}
    return texts


def test_both_run_until_they_are_told_to_end_and_the_store_goes(start: Started, tmp_path: Path) -> None:
    server = start(SLEEPS)
    wait_for((tmp_path / "ready").exists)
    assert set(groups(tmp_path)) == {"sut"}
    assert (tmp_path / "tsdb").is_dir()
    (tmp_path / "pids").write_text(f"{os.getpid()} sut\n{os.getpid()} client\n")
    server.send_signal(signal.SIGHUP)
    wait_for(lambda: set(groups(tmp_path)) == {"sut", "client"})
    os.killpg(server.pid, signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0
    assert not (tmp_path / "tsdb").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(server.pid, 0)


def test_one_that_ends_by_itself_takes_the_other_with_it_and_its_last_words_are_told(
    start: Started, tmp_path: Path
) -> None:
    server = start(ENDS)
    _, output = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, output) == (1, "cadvisor ended: no such hierarchy\n")
    assert not (tmp_path / "tsdb").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(server.pid, 0)
