"""Run a program in a container with input, separate outputs and a time limit.

The engine answers an exec by handing the connection over to the program (Docker Engine API, "Exec start"). Outputs
come in frames: an 8-byte header (stream, three zeros, length), then the content.
"""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from docker.errors import APIError

from tare.deployments.cgroup.removal import send
from tare.errors import EngineSilent, RunFailed, TareError, TimedOut
from tare.sites import Completed, Host
from tare.sites.engine import is_no_answer, names_no_containerd
from tare.sites.process import identify

if TYPE_CHECKING:
    from docker import DockerClient

_HEADER = struct.Struct(">BxxxL")
_STDERR = 2
_NOT_RUN = 126
"""Exit code that the engine gives for an exec that its containerd did not start."""
_CHUNK_BYTES = 1 << 16


def engine_exec(  # noqa: PLR0913 - an engine, a place in it, and what `Deployment.exec` is given
    engine: DockerClient,
    host: Host,
    container_id: str,
    argv: Sequence[str],
    *,
    timeout_s: float,
    user: str,
    stdin: bytes,
) -> Completed:
    """Run the program to its end; after `timeout_s` it is killed and `TimedOut` is raised."""
    deadline = time.monotonic() + timeout_s
    try:
        made = engine.api.exec_create(container_id, list(argv), stdin=True, user=user)
        connection: Any = engine.api.exec_start(made["Id"], socket=True)
    except APIError as error:
        if is_no_answer(error):
            raise _not_run(host, argv, container_id) from error
        raise RunFailed(f"{argv[0]} cannot be run in container {container_id[:12]}: {error.explanation}") from error
    plain: socket.socket = connection._sock  # docker-py offers no other way to set a time limit
    # The reader that parsed the HTTP header may already hold the first frames.
    reader: io.BufferedReader = connection._response.raw._fp.fp
    try:
        raw = _converse(plain, reader, stdin, deadline)
    except TimeoutError as error:
        pid = engine.api.exec_inspect(made["Id"]).get("Pid")
        if pid and (process := identify(host, pid)) is not None:
            with suppress(TareError):  # a user may not; the program then ends with its container
                send(host, process, "KILL")
        raise TimedOut(f"{argv[0]} did not end within {timeout_s:g} s in container {container_id[:12]}") from error
    finally:
        connection._response.close()  # first, as it flushes its reader: over a closed one, that fails when freed
        connection.close()
        plain.close()
    stdout, stderr = split_frames(raw)
    code = _exit_code(engine, made["Id"], deadline)
    if code == _NOT_RUN and not stderr and (not stdout or _is_of_engine(stdout)):
        raise _not_run(host, argv, container_id)
    return Completed(tuple(argv), code, stdout, stderr)


def _not_run(host: Host, argv: Sequence[str], container_id: str) -> EngineSilent:
    return EngineSilent(f"the engine on {host.name} did not run {argv[0]} in container {container_id[:12]}")


def _is_of_engine(stdout: bytes) -> bool:
    """Whether an engine printed this, and not a program or a runtime, which gives its reason for a refusal.

    dockerd prints the error of its containerd as one line that ends with CR LF (moby, router/container/exec.go).
    """
    line, end, rest = stdout.partition(b"\r\n")
    return bool(end) and not rest and b"\n" not in line and names_no_containerd(line.decode(errors="replace"))


def split_frames(raw: bytes) -> tuple[bytes, bytes]:
    """Split frames into standard output and standard error. Raises `RunFailed` if the last frame is cut short."""
    outputs = {1: bytearray(), _STDERR: bytearray()}
    view = memoryview(raw)
    while view:
        if len(view) < _HEADER.size:
            raise RunFailed("the engine's answer to an exec ends in the middle of a frame's header")
        stream, length = _HEADER.unpack(view[: _HEADER.size])
        content = view[_HEADER.size : _HEADER.size + length]
        if len(content) < length:
            raise RunFailed("the engine's answer to an exec ends in the middle of a frame")
        outputs[_STDERR if stream == _STDERR else 1] += content
        view = view[_HEADER.size + length :]
    return bytes(outputs[1]), bytes(outputs[_STDERR])


def _converse(plain: socket.socket, reader: io.BufferedReader, stdin: bytes, deadline: float) -> bytes:
    """Write the input, close the writing side, read all output.

    The program must read input beyond the socket's buffer.
    """
    plain.settimeout(_left(deadline))
    plain.sendall(stdin)
    plain.shutdown(socket.SHUT_WR)
    received = bytearray()
    while True:
        plain.settimeout(_left(deadline))
        chunk = reader.read1(_CHUNK_BYTES)
        if not chunk:
            return bytes(received)
        received += chunk


def _exit_code(engine: DockerClient, exec_id: str, deadline: float) -> int:
    """Wait for the exit code: the engine closes the connection a moment before it records the code."""
    while True:
        seen = engine.api.exec_inspect(exec_id)
        if not seen["Running"] and seen["ExitCode"] is not None:
            return int(seen["ExitCode"])
        _left(deadline)
        time.sleep(0.005)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
