"""Several programs as one server, with small real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tare.databases.ferretdb import together
from tare.databases.ferretdb.together import ONCE, START, UNTIL, read_steps, write_steps

LIVES = ("sleep", "1000")
ENDS_WELL = ("sh", "-c", "trap 'exit 0' INT; while :; do sleep 0.05; done")


class Together:
    """The program as a process of its own, its steps in a directory."""

    def __init__(self, folder: Path, steps: Sequence[Sequence[str]]) -> None:
        self.steps = folder / "steps"
        self.steps.write_text(write_steps(steps))
        argv = [sys.executable, "-I", together.__file__, "run", str(self.steps)]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def end(self) -> None:
        argv = [sys.executable, "-I", together.__file__, "end", str(self.steps)]
        subprocess.run(argv, check=True, timeout=60)

    def wait(self) -> tuple[int, str]:
        _, output = self.process.communicate(timeout=60)
        return self.process.returncode, output

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def both(self) -> list[int]:
        """The two programs, when the step after them has ended."""
        deadline = time.monotonic() + 60
        while len(values := self.children()) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return values

    def until(self, path: Path) -> None:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def started() -> Iterator[list[Together]]:
    made: list[Together] = []
    yield made
    for each in made:
        if each.process.poll() is None:
            for child in each.children():
                os.kill(child, signal.SIGKILL)
            each.process.kill()
            each.process.wait()
        if each.process.stderr is not None:
            each.process.stderr.close()


def test_steps_are_carried_out_in_order_and_the_end_is_a_good_one(tmp_path: Path, started: list[Together]) -> None:
    first, second, up = tmp_path / "first", tmp_path / "second", tmp_path / "up"
    make_late = ("sh", "-c", f"sleep 0.3; : > {first}; exec sleep 1000")
    server = Together(
        tmp_path,
        [
            (START, "SIGTERM", *make_late),
            (UNTIL, "test", "-e", str(first)),
            (ONCE, "cp", str(first), str(second)),
            (START, "SIGINT", *ENDS_WELL),
            (ONCE, "touch", str(up)),
        ],
    )
    started.append(server)
    server.until(up)
    assert second.exists()
    programs = server.both()
    server.end()
    assert server.wait() == (0, "")
    assert not [pid for pid in programs if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("which", [0, 1])
def test_either_one_that_dies_takes_the_other_with_it(tmp_path: Path, started: list[Together], which: int) -> None:
    up = tmp_path / "up"
    server = Together(tmp_path, [(START, "SIGTERM", *LIVES), (START, "SIGTERM", *LIVES), (ONCE, "touch", str(up))])
    started.append(server)
    server.until(up)
    programs = server.both()
    os.kill(programs[which], signal.SIGKILL)
    assert server.wait() == (1, "together: sleep ended with -9\n")
    assert not [pid for pid in programs if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((ONCE, "false"), "returned non-zero exit status 1"),
        ((START, "SIGTERM", "/no/such/program"), "No such file or directory"),
        (("sometimes", "true"), "no step 'sometimes'"),
    ],
)
def test_a_step_that_fails_ends_what_was_started(
    tmp_path: Path, started: list[Together], step: tuple[str, ...], message: str
) -> None:
    server = Together(tmp_path, [(START, "SIGTERM", *LIVES), step])
    started.append(server)
    code, words = server.wait()
    assert code == 1
    assert message in words


def test_a_program_that_dies_while_another_is_waited_for_is_told(tmp_path: Path, started: list[Together]) -> None:
    server = Together(tmp_path, [(START, "SIGTERM", "false"), (UNTIL, "false")])
    started.append(server)
    assert server.wait() == (1, "together: false ended with 1\n")


def test_a_bad_end_of_a_program_is_one_of_all(tmp_path: Path, started: list[Together]) -> None:
    up = tmp_path / "up"
    bad = ("sh", "-c", f"trap 'exit 7' TERM; : > {up}; while :; do sleep 0.05; done")
    server = Together(tmp_path, [(START, "SIGTERM", *bad)])
    started.append(server)
    server.until(up)
    server.end()
    assert server.wait()[0] == 1


def test_the_file_holds_any_words_of_one_line() -> None:
    steps = [["start", "SIGTERM", "a b", "--c='d'"], ["once", "e"]]
    assert read_steps(write_steps(steps)) == steps
    for word in ("", "a\nb"):
        with pytest.raises(ValueError, match="in no step"):
            write_steps([["once", word]])
