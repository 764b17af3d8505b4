"""Answers what a tare asks by standard input, until that ends.

Run in a container by the host's own Python, so it needs the standard library only:

    python3 -I -S -c SOURCE

A request is a header (two lengths), a JSON object and bytes; so is an answer. Every call ends within the time that
the request gives it.
"""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import tarfile
from typing import Any, BinaryIO

HEADER = struct.Struct(">QQ")
CHANGED = "TARE.mtime_ns"


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """One message, `None` at the end of the stream."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    words, content = HEADER.unpack(head)
    return json.loads(stream.read(words)), stream.read(content)


def message(words: dict[str, Any], content: bytes = b"") -> bytes:
    """The bytes of one message."""
    text = json.dumps(words).encode()
    return HEADER.pack(len(text), len(content)) + text + content


def run(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """A program to its end, or to the end of its time; standard output first, then standard error."""
    program = subprocess.Popen(
        asked["argv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    try:
        out, err = program.communicate(content, timeout=asked["timeout_s"])
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        return {"late": True}, b""
    return {"code": program.returncode, "out": len(out)}, out + err


def read(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's content."""
    del content
    with open(asked["path"], "rb") as file:  # noqa: PTH123 - run by any Python
        return {}, file.read()


def put(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """Whole or not at all (a rename), but pseudo-files in place."""
    path = asked["path"]
    scratch = path if asked["in_place"] else f"{path}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | (0 if asked["in_place"] else os.O_CREAT | os.O_EXCL)
    handle = os.open(scratch, flags, asked["mode"])
    try:
        if not asked["in_place"]:
            os.fchmod(handle, asked["mode"])
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)
    if scratch != path:
        os.replace(scratch, path)  # noqa: PTH105 - run by any Python
    return {}, b""


def get(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's content, or a directory as a tar. A link or a pipe in its place is not followed or waited for."""
    del content
    path = asked["path"]
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else io.BytesIO() as file:
        if not isinstance(file, io.BytesIO):
            return {"kind": "file"}, file.read()
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                raise OSError(22, "it is no regular file", path)
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                tar.add(f"/proc/self/fd/{handle}/.", arcname=".", filter=lambda each: _dated(each, handle))
        finally:
            os.close(handle)
        return {"kind": "directory"}, file.getvalue()


def _dated(member: tarfile.TarInfo, directory: int) -> tarfile.TarInfo:
    """With its time to the nanosecond, which a tar's own number is too coarse for."""
    about = os.stat(member.name, dir_fd=directory, follow_symlinks=False)
    member.pax_headers = {CHANGED: str(about.st_mtime_ns)}
    return member


VERBS = {"run": run, "read": read, "put": put, "get": get}


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Until `source` ends."""
    while (request := receive(source)) is not None:
        asked, content = request
        try:
            words, given = VERBS[asked["verb"]](asked, content)
        except OSError as error:
            words, given = {"errno": error.errno, "why": error.strerror or str(error)}, b""
        target.write(message(words, given))
        target.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
