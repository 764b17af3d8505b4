"""The gate waits, then is the task's program: same process, its words and variables, found as by a shell."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tare.deployments.kube.gate import NO_PROGRAM, gate_program, gated
from tare.errors import EnvironmentLacks

MACHINE = os.uname().machine
here = pytest.mark.skipif(MACHINE != "x86_64", reason=f"no gate for {MACHINE}")


def _begun(tmp_path: Path, *argv: str, path: str = "/nowhere:/bin:/usr/bin") -> subprocess.Popen[bytes]:
    gate, fifo = tmp_path / "gate", tmp_path / "open"
    gate.write_bytes(gate_program(MACHINE))
    gate.chmod(0o755)
    os.mkfifo(fifo)
    env = {"PATH": path, "GREETING": "hello"}
    words = gated(argv, env)
    return subprocess.Popen([str(gate), str(fifo), *words[2:]], env=env, stdout=subprocess.PIPE)


@here
def test_the_program_begins_when_the_fifo_is_written_to_and_is_the_same_process(tmp_path: Path) -> None:
    process = _begun(tmp_path, "sh", "-c", 'echo "$GREETING $1 $$"', "sh", "a b")
    time.sleep(0.1)
    assert process.poll() is None
    assert Path(f"/proc/{process.pid}/exe").resolve() == tmp_path / "gate"
    (tmp_path / "open").write_bytes(b"\n")
    out, _ = process.communicate(timeout=60)
    assert out.decode() == f"hello a b {process.pid}\n"
    assert process.returncode == 0


@here
@pytest.mark.parametrize("argv", [("no-such-program",), ("/etc/passwd",)])
def test_a_program_that_cannot_be_executed_ends_as_in_a_shell(tmp_path: Path, argv: tuple[str, ...]) -> None:
    process = _begun(tmp_path, *argv)
    (tmp_path / "open").write_bytes(b"\n")
    process.communicate(timeout=60)
    assert process.returncode == NO_PROGRAM


@here
def test_a_fifo_that_is_closed_without_a_word_lets_nothing_in(tmp_path: Path) -> None:
    process = _begun(tmp_path, "true")
    (tmp_path / "open").write_bytes(b"")
    process.communicate(timeout=60)
    assert process.returncode == NO_PROGRAM


def test_a_path_is_taken_as_it_stands_and_a_name_is_looked_for() -> None:
    assert gated(["/bin/x", "1"], {}) == ("/.tare/gate", "/.tare/open", "/bin/x", "", "/bin/x", "1")
    assert gated(["x"], {"PATH": "/a::/b"}) == ("/.tare/gate", "/.tare/open", "/a/x", "/b/x", "", "x")


def test_a_machine_without_a_gate_is_named() -> None:
    with pytest.raises(EnvironmentLacks, match="and this node is riscv64"):
        gate_program("riscv64")
