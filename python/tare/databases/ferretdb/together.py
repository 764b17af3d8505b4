"""Run several programs as one server: start them in order, end them together. Runs in the server's own root.

Arguments: `run` or `end`, and a file of steps. Empty lines separate steps; each line is a word. The first word says
what to do with the others. `start`: start a program, which must live as long as the server. `until`: repeat a
program until it exits with 0. `once`: run a program, which must exit with 0. SIGTERM and SIGINT end the programs,
the last one first, each by the signal that its step names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

START, UNTIL, ONCE = "start", "until", "once"
_UNTIL_S, _ONCE_S, _GRACE_S = 100.0, 100.0, 300.0
_POLL_S = 0.05
_ENDED, _FAILED = 0, 1


class Ended(Exception):
    """A signal asked for the end."""


def write_steps(steps: Sequence[Sequence[str]]) -> str:
    """Render a file of steps. Raises `ValueError` for a word that the format cannot hold."""
    if any(not word or "\n" in word for step in steps for word in step):
        raise ValueError("an empty word, or one of several lines, is in no step")
    return "\n".join("".join(f"{word}\n" for word in step) for step in steps)


def read_steps(text: str) -> list[list[str]]:
    """Parse a file of steps into the words of each step."""
    return [part.splitlines() for part in text.split("\n\n") if part.strip()]


def main(what: str, path: str) -> int:
    """`run` the steps, or `end` the server that runs them, from the same PID namespace. Returns the exit code."""
    if what == "run":
        with open(f"{path}.pid", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib is not in every small Python
            file.write(str(os.getpid()))
        why = run(path)
        if why:
            sys.stderr.write(f"together: {why}\n")
        return _FAILED if why else _ENDED
    with open(f"{path}.pid", encoding="ascii") as file:  # noqa: PTH123 - pathlib is not in every small Python
        os.kill(int(file.read()), signal.SIGTERM)
    return _ENDED


def run(path: str) -> str:
    """Carry out the steps, then watch the programs until a signal. Returns why it failed, on one line, or ""."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not in every small Python
        steps = read_steps(file.read())
    running: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _end)
    why = ""
    try:
        for step in steps:
            _carry_out(step, running)
        while True:
            _must_all_live(running)
            time.sleep(_POLL_S)
    except Ended:
        pass
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        why = str(error)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    for program, by in reversed(running):
        if (code := _stop(program, by)) != 0 and not why:
            why = f"{_name(program)} ended with {code}"
    return why


def _carry_out(step: list[str], running: list[tuple[subprocess.Popen[bytes], signal.Signals]]) -> None:
    kind, *words = step
    if kind == START:
        by, *argv = words
        running.append((subprocess.Popen(argv, stdin=subprocess.DEVNULL), signal.Signals[by]))
    elif kind == ONCE:
        subprocess.run(words, stdin=subprocess.DEVNULL, check=True, timeout=_ONCE_S)
    elif kind == UNTIL:
        deadline = time.monotonic() + _UNTIL_S
        while _tried(words) != 0:
            _must_all_live(running)
            if time.monotonic() > deadline:
                raise ValueError(f"{words[0]} did not end with 0 within {_UNTIL_S:g} s")
            time.sleep(_POLL_S)
    else:
        raise ValueError(f"there is no step {kind!r}")


def _tried(words: list[str]) -> int:
    quiet = subprocess.DEVNULL
    return subprocess.run(words, check=False, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_ONCE_S).returncode


def _must_all_live(running: list[tuple[subprocess.Popen[bytes], signal.Signals]]) -> None:
    for program, _ in running:
        if program.poll() is not None:
            raise ValueError(f"{_name(program)} ended with {program.returncode}")


def _name(program: subprocess.Popen[bytes]) -> str:
    return str(program.args[0]) if isinstance(program.args, list) else str(program.args)


def _stop(program: subprocess.Popen[bytes], by: signal.Signals) -> int:
    """End a program and return its exit code; 0 if the signal that was sent ended it."""
    if program.poll() is None:
        program.send_signal(by)
        try:
            program.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
    return 0 if program.returncode == -by else program.returncode


def _end(number: int, frame: object) -> None:
    del number, frame
    raise Ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
