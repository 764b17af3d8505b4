"""Answer requests on standard input until it ends.

Run in a container by the host's own Python, so it uses the standard library only:

    python3 -I -S -c SOURCE

A request is a header (two lengths), a JSON object and bytes; so is an answer. A program is killed at the request's
time limit.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import struct
import subprocess
import sys
from typing import Any, BinaryIO

HEADER = struct.Struct(">QQ")


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; `None` at the end of the stream."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    words, content = HEADER.unpack(head)
    return json.loads(stream.read(words)), stream.read(content)


def message(words: dict[str, Any], content: bytes = b"") -> bytes:
    """Encode one message."""
    text = json.dumps(words).encode()
    return HEADER.pack(len(text), len(content)) + text + content


def run(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """Run a program to its end or its time limit; returns standard output, then standard error."""
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
    """Read a pseudo-file or a regular file."""
    del content
    if asked["path"].startswith(("/proc/", "/sys/")):
        with open(asked["path"], "rb") as file:  # noqa: PTH123 - run by any Python
            return {}, file.read()
    with os.fdopen(opened(asked["path"]), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(22, "it is no regular file", asked["path"])
        return {}, file.read()


def put(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """Write a file completely or not at all (by a rename); pseudo-files are written in place."""
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


def listed(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """List a path and, for a directory, everything below it, parents first; paths are relative to it."""
    del content
    top = opened(asked["path"])
    try:
        about = os.fstat(top)
        rows = [row("", about)]
        if stat.S_ISDIR(about.st_mode):
            # Uses descriptors: a link that a program puts in a directory's place is not followed.
            for folder, _, _, handle in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                with os.scandir(handle) as entries:
                    for entry in entries:
                        path = os.path.normpath(os.path.join(folder, entry.name))  # noqa: PTH118 - run by any Python
                        info = entry.stat(follow_symlinks=False)
                        link = os.readlink(entry.name, dir_fd=handle) if stat.S_ISLNK(info.st_mode) else None
                        rows.append(row(path, info, link))
    finally:
        os.close(top)
    return {}, json.dumps(rows).encode()


def row(path: str, info: os.stat_result, link: str | None = None) -> dict[str, Any]:
    """One row of a listing."""
    kind = next((name for is_one, name in KINDS if is_one(info.st_mode)), "other")
    mode = stat.S_IMODE(info.st_mode)
    return {"path": path, "kind": kind, "mode": mode, "modified_ns": info.st_mtime_ns, "link": link}


def part(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """Read up to `limit` bytes from `offset` of a regular file: `path`, or the path `below` it."""
    del content
    handle = opened(asked["path"], asked["below"])
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(22, "it is no regular file", asked["path"])
        given = os.pread(handle, asked["limit"], asked["offset"])
    finally:
        os.close(handle)
    return {"whole": len(given) < asked["limit"]}, given


def opened(path: str, below: str = "") -> int:
    """Open a file. Links and pipes are neither followed nor waited for, also in place of a directory."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    handle = os.open(path, flags)
    for name in below.split("/") if below else ():
        try:
            deeper = os.open(name, flags, dir_fd=handle)
        finally:
            os.close(handle)
        handle = deeper
    return handle


KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))
VERBS = {"run": run, "read": read, "put": put, "list": listed, "part": part}


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer requests until `source` ends."""
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
