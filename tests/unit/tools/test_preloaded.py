"""A program that starts by fork is, to all that asks, the program that starts by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded

TELLS = """
import json, os, signal, sys
from pathlib import Path
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path,
    "main": __name__,
    "in": sys.stdin.read(),
    "environ": dict(os.environ),
    "cwd": os.getcwd(),
    "parent": os.getppid(),
    "session": os.getsid(0) == os.getpid(),
    "group": os.getpgid(0) == os.getpid(),
    "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    "signals": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
    "streams": [
        (each.encoding, each.errors, each.line_buffering, each.write_through, type(each.buffer).__name__, each.name)
        for each in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "executable": sys.executable,
    "compiles": sys.dont_write_bytecode,
    "open": sorted(int(each) for each in os.listdir("/proc/self/fd"))[:4],
    "cgroup": Path("/proc/self/cgroup").read_text(),
}))
sys.stderr.write("to standard error\\n")
sys.exit(7)
"""
WAIT_S = 60.0


def told_by(start: Any, words: list[str], **given: Any) -> tuple[dict[str, Any], str, int]:
    with start(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **given,
    ) as process:
        out, err = process.communicate("from its standard input", timeout=WAIT_S)
    return json.loads(out), err, process.returncode


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "tells.py"
    path.write_text(TELLS)
    return path


@pytest.mark.parametrize("how", ["-c", "-m", "file"])
@pytest.mark.parametrize("new_session", [False, True])
def test_arguments_surroundings_signals_and_streams_are_those_of_a_start(
    script: Path, how: str, new_session: bool
) -> None:
    words = {"-c": ["-c", TELLS], "-m": ["-m", "tells"], "file": [str(script)]}[how] + ["a b", "--c"]
    environ = {**os.environ, "PYTHONPATH": "/nowhere", "MINE": "\N{GREEK SMALL LETTER ALPHA}"}
    del environ["HOME"]
    given = {"cwd": script.parent, "env": environ, "start_new_session": new_session}
    forked, started = (told_by(start, words, **given) for start in (preloaded.TextPopen, subprocess.Popen))
    assert forked[1:] == started[1:]
    for name, value in started[0].items():
        assert forked[0][name] == value, name
    assert forked[0]["parent"] == os.getpid()


def test_what_it_has_imported_it_need_not_import_again() -> None:
    words = ["-c", "import sys; print('tare.cli.study.run' in sys.modules)"]
    assert preloaded.run([sys.executable, *words], timeout=WAIT_S).stdout == "True\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_as_it_ends_any_program(number: signal.Signals) -> None:
    words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    with preloaded.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(WAIT_S) == -number


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        words = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"]
        assert preloaded.run(words, timeout=WAIT_S).stdout == "True\n"
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    code = "import os, sys, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run([sys.executable, "-c", code], timeout=2.0, cwd=tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("words", [["-I", "-S", "-c"], ["-c"]])
def test_options_and_variables_of_python_itself_are_those_of_a_start(words: list[str]) -> None:
    """No fork could heed them."""
    environ = {**os.environ, "PYTHONHASHSEED": "1"}
    code = "import sys; print(sys.flags.isolated or hash('a'), 'tare' in sys.modules)"
    argv = [sys.executable, *words, code]
    started = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert preloaded.run(argv, timeout=WAIT_S, env=environ).stdout == started.stdout
    assert started.stdout.endswith("False\n")


def test_an_orphan_of_the_tests_goes_to_whom_it_would_have_gone() -> None:
    """This process takes in orphans for no longer than a fork takes."""
    preloaded.run([sys.executable, "-c", ""], timeout=WAIT_S)
    words = ["sh", "-c", "sh -c 'sleep 1; ps -o ppid= -p $$' & exit"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        assert int(shell.stdout.read()) != os.getpid()
