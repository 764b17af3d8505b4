"""Send one request to a virtual machine over its line. Run on the host by its own Python; standard library only.

    python3 -I -S guest_line.py LINE PID SECONDS      standard input: a request (JSON); output: its answer, with the
                                                      moments of CLOCK_MONOTONIC between which it was given
    python3 -I -S guest_line.py qmp SOCKET SECONDS COMMAND   QEMU's answer in its machine protocol (JSON)
    python3 -I -S guest_line.py become PROCS... -- ARGV...   join the control groups, then become ARGV

LINE.in and LINE.out are the two FIFOs of QEMU's chardev `pipe`. Exit code 3: the machine PID has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

_LOOK_S = 0.2
_GONE, _LATE = 3, 4
_CHUNK = 1 << 16


def ask(line: str, pid: int, seconds: float) -> int:
    """Send the request on standard input and print its answer.

    Only one caller asks at a time; answers to earlier callers that have given up are skipped.
    """
    deadline = time.monotonic() + seconds
    request = {**json.load(sys.stdin), "id": uuid4().hex}
    # Both FIFOs are opened for reading and writing, as QEMU does, so that no open waits for the other end.
    with open(f"{line}.in", "r+b", buffering=0) as there, open(f"{line}.out", "r+b", buffering=0) as back:  # noqa: PTH123 - no path is made of them
        while not _locked(there):
            if (code := _pointless(pid, deadline)) is not None:
                return code
            time.sleep(0.01)
        os.set_blocking(there.fileno(), False)
        # The first line break ends a request that a killed caller may have left half written.
        left = memoryview(b"\n" + json.dumps(request).encode() + b"\n")
        received, asked_ns = b"", time.monotonic_ns()
        while True:
            writable = [there] if left else []
            reads, writes, _ = select.select([back], writable, [], _LOOK_S)
            if writes:
                left = left[there.write(left[: _CHUNK // 16]) or 0 :]
            if reads:
                received += os.read(back.fileno(), _CHUNK)
                *lines, received = received.split(b"\n")
                for answer in lines:
                    if _is_answer(answer, request["id"]):
                        between = {"asked_ns": asked_ns, "answered_ns": time.monotonic_ns()}
                        json.dump({**json.loads(answer), **between}, sys.stdout)
                        return 0
            elif (code := _pointless(pid, deadline)) is not None:
                return code


def qmp(path: str, seconds: float, wanted: str) -> int:
    """Run a command without arguments of QEMU's machine protocol (qemu-qmp-ref(7)) and print its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        stream = connection.makefile("rwb")
        stream.readline()
        answer: dict[str, Any] = {}
        for command in ("qmp_capabilities", wanted):
            stream.write(json.dumps({"execute": command}).encode() + b"\n")
            stream.flush()
            answer = {}
            while "return" not in answer:
                answer = json.loads(stream.readline())
                if "error" in answer:
                    sys.stderr.write(f"{answer['error']}\n")
                    return 1
    json.dump(answer["return"], sys.stdout)
    return 0


def become(words: list[str]) -> int:
    """Join the task's groups, then become the program, so that the groups account for everything it does."""
    end = words.index("--")
    for procs in words[:end]:
        Path(procs).write_text("0")
    os.execvp(words[end + 1], words[end + 1 :])  # noqa: S606 - a shell is what must not be there


def _locked(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pointless(pid: int, deadline: float) -> int | None:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    except (FileNotFoundError, ProcessLookupError):
        state = b"X"
    if state in (b"X", b"Z"):
        return _GONE
    return _LATE if time.monotonic() > deadline else None


def _is_answer(line: bytes, ident: str) -> bool:
    try:
        parsed = json.loads(line)
    except ValueError:
        return False
    return isinstance(parsed, dict) and parsed.get("id") == ident


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    if first == "become":
        sys.exit(become(rest))
    if first == "qmp":
        sys.exit(qmp(rest[0], float(rest[1]), rest[2]))
    sys.exit(ask(first, int(rest[0]), float(rest[1])))
