"""A host over SSH: the agent there carries out the methods of `Host`."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tare.errors import NO_FILE, RunFailed, TimedOut, host_failed
from tare.sites import Completed, Host, NewFile, Output, Process
from tare.sites.abilities import ClockReading, NetworkProbe
from tare.sites.reading import last_line
from tare.sites.ssh.carried import Carried
from tare.sites.ssh.frames import MOST_DATA
from tare.sites.ssh.link import Link, Refused, Request

_PART = 4 << 20
"""Bytes of a long file in one message: what a broken connection costs again."""
_TOGETHER = 1 << 20
_SMALL, _ABSENT = 1 << 18, -1
"""Limits of files that are read together, as in crates/agent/src/files.rs."""
_PSEUDO = ("/proc/", "/sys/")


class SshHost(Host):
    """Errors and limits are those of `LocalHost`. `python3` is the host's own, from $PATH.

    tare's own programs, named by their local paths, are copied to the host when they are first run. A call without
    a time limit of its own has the link's; a connection that comes back in time goes unnoticed.
    """

    is_remote = True

    def __init__(self, link: Link) -> None:
        self.name = link.name
        self._link = link
        self._carried = Carried(link)

    def lost_for_good(self) -> str | None:
        """Why the host is lost, once its agent's lease is over; waits while the connection is being made anew."""
        return self._link.lost_for_good()

    def tell_losses(self, tell: Callable[[str], None]) -> None:
        """Report losses of the connection that last some seconds."""
        self._link.tell_losses(tell)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run to the end, in a process group of its own that is killed completely when the time is up."""
        if len(stdin) > MOST_DATA:
            raise RunFailed(
                f"{_short_command(argv)} would be given {len(stdin)} bytes on {self.name}: put them in a file"
            )
        try:
            answer = self._link.ask(
                "run", stdin, timeout_s=timeout_s, limit_s=timeout_s, **self._program(argv, env)
            )
        except Refused as refused:
            if refused.kind == "timeout":
                raise self._late(argv, timeout_s) from refused
            what = f"{argv[0]} cannot be run on {self.name}"
            raise host_failed(what, refused.errno, _reason(refused)) from refused
        split = answer.fields["stdout"]
        done = Completed(tuple(argv), answer.fields["code"], answer.data[:split], answer.data[split:])
        if check and done.code != 0:
            raise RunFailed(f"{_short_command(argv)} ended with {done.code} on {self.name}: {last_line(done)}")
        return done

    def _program(self, argv: Sequence[str], env: Mapping[str, str] | None) -> dict[str, Any]:
        place = self._carried.path_there(argv[0])
        return {"argv": [place, *argv[1:]], "env": None if env is None else dict(env)}

    def _late(self, argv: Sequence[str], timeout_s: float) -> TimedOut:
        return TimedOut(f"{_short_command(argv)} did not end within {timeout_s:g} s on {self.name} and was killed")

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Start in a session of its own, with empty standard input and new output files.

        With `announce`, the agent holds the program back until it learns that the process is in the ledger.
        """
        fields = {**self._program(argv, env), "stdout": output.stdout, "stderr": output.stderr}
        try:
            begun = self._link.ask("start", held=announce is not None, **fields).fields
            process = Process(begun["pid"], begun["started_ticks"], self._link.agent.boot_id)
            if announce is not None:
                self._announced(process, announce)
        except Refused as refused:
            why = "no such program may be run there" if announce else os.strerror(2)
            why = why if refused.kind == "absent" else _reason(refused)
            raise host_failed(f"{argv[0]} cannot be started on {self.name}", refused.errno, why) from refused
        return process

    def _announced(self, process: Process, announce: Callable[[Process], None]) -> None:
        try:
            announce(process)
        except BaseException:
            self._link.ask("abandon", pid=process.pid)
            raise
        self._link.ask("release", pid=process.pid)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file completely or not at all (by a rename), except below /proc and /sys."""
        try:
            if isinstance(source, bytes) or source.stat().st_size <= _PART:
                content = source if isinstance(source, bytes) else source.read_bytes()
                if len(content) <= _PART or target.startswith(_PSEUDO):
                    self._link.ask("put", content, path=target, mode=mode)
                else:
                    self._put_parts(_parts_of(content), target, mode)
            else:
                with source.open("rb") as file:
                    self._put_parts(_parts_from(file), target, mode)
        except Refused as refused:
            raise RunFailed(f"{target} cannot be written on {self.name}: {_reason(refused)}") from refused

    def put_all(self, files: Sequence[NewFile]) -> None:
        """See `Host.put_all`; long files are written one by one."""
        small = [file for file in files if len(file.content) <= _SMALL]
        for file in files:
            if file not in small:
                self.put(file.content, file.path, mode=file.mode)
        puts = [Request("put", {"path": file.path, "mode": file.mode}, file.content) for file in small]
        try:
            self._link.ask_all(puts)
        except Refused as refused:
            names = ", ".join(file.path for file in small)
            raise RunFailed(f"{names} cannot be written on {self.name}: {_reason(refused)}") from refused

    def _put_parts(self, parts: Iterator[bytes], target: str, mode: int) -> None:
        scratch, size = f"{target}.{secrets.token_hex(16)}", 0
        for part in parts:
            self._link.ask("put_part", part, scratch=scratch, offset=size)
            size += len(part)
        self._link.ask("put_whole", scratch=scratch, path=target, mode=mode, size=size)

    def get(self, source: str, target: Path) -> None:
        """Copy a file or a directory.

        Links inside it are copied as links, but `source` itself must not be a link.
        """
        try:
            listing = json.loads(self._link.ask("list", path=source).data)
            if listing[0]["kind"] == "link":
                raise RunFailed(f"{source} cannot be copied from {self.name}: it is a link")
            if listing[0]["kind"] == "directory":
                target.mkdir(parents=True, exist_ok=True)
                small = self._small_files(source, listing[1:])
                for entry in listing[1:]:
                    self._get_entry(source, target, entry, small)
                for entry in reversed([each for each in listing if each["kind"] == "directory"]):
                    _as_it_was(target / entry["path"], entry)
            else:
                self._get_file(source, target)
        except Refused as refused:
            raise RunFailed(f"{source} cannot be copied from {self.name}: {_reason(refused)}") from refused
        except OSError as error:
            raise RunFailed(f"{source} cannot be copied from {self.name}: {error}") from error

    def _small_files(self, source: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, bytes | None]:
        """Contents of files that are read together, as far as an agent's memory should hold them."""
        paths, left = [], _TOGETHER
        for entry in entries:
            if entry["kind"] == "file" and entry.get("size", _PART) <= min(_SMALL, left):
                left -= entry["size"]
                paths.append(f"{source}/{entry['path']}")
        return self._read_all(paths, regular=True)

    def _get_entry(
        self, source: str, target: Path, entry: Mapping[str, Any], small: Mapping[str, bytes | None]
    ) -> None:
        place = target / entry["path"]
        # A host names its files itself, and a link that it made earlier may lead anywhere.
        if ".." in Path(entry["path"]).parts or not place.parent.resolve().is_relative_to(target.resolve()):
            raise RunFailed(f"{source} cannot be copied from {self.name}: {entry['path']!r} leads out of it")
        if entry["kind"] == "directory":
            place.mkdir(exist_ok=True)
        elif entry["kind"] == "link":
            place.symlink_to(entry["link"])
        else:
            path = f"{source}/{entry['path']}"
            self._get_file(path, place, small.get(path))
            _as_it_was(place, entry)

    def _get_file(self, source: str, target: Path, content: bytes | None = None) -> None:
        """Write under another name until the file is complete. `content`: if it was read already."""
        scratch = target.with_name(f"{target.name}.{secrets.token_hex(16)}")
        try:
            with scratch.open("wb") as file:
                for part in self._parts(source, regular=True) if content is None else (content,):
                    file.write(part)
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)

    def read(self, path: str) -> bytes | None:
        """Read a file; `None` if it does not exist, or belongs to a process that has ended."""
        try:
            return b"".join(self._parts(path))
        except Refused as refused:
            if refused.kind == "absent":
                return None
            what = f"{path} cannot be read on {self.name}"
            raise host_failed(what, refused.errno, _reason(refused), spent=NO_FILE) from refused

    def read_all(self, paths: Sequence[str]) -> Mapping[str, bytes | None]:
        """See `Host.read_all`."""
        return self._read_all(paths, regular=False)

    def _read_all(self, paths: Sequence[str], *, regular: bool) -> Mapping[str, bytes | None]:
        if not paths:
            return {}
        answer = self._link.ask("read_all", paths=list(paths), regular=regular)
        contents: dict[str, bytes | None] = {}
        start = 0
        for path, length in zip(paths, answer.fields["lengths"], strict=False):
            if length >= 0:
                contents[path] = answer.data[start : start + length]
                start += length
            elif length == _ABSENT:
                contents[path] = None
        return contents

    def clocks(self) -> ClockReading:
        """The agent's clocks, which the answer to a ping contains."""
        fields = self._link.ask("ping").fields
        return ClockReading(fields["monotonic_ns"], fields["wall_ns"])

    def network_probe(self) -> NetworkProbe:
        """The agent's own."""
        return self

    @contextmanager
    def echo(self, address: str) -> Iterator[int]:
        """Have the agent answer probes; the agent also ends this by itself."""
        try:
            port: int = self._link.ask("echo", address=address).fields["port"]
        except Refused as refused:
            hint = "`address` in sites.yaml must be the host's own address on the measured network"
            raise RunFailed(
                f"cannot listen at {address} on {self.name}: {_reason(refused)}", hint=hint
            ) from refused
        try:
            yield port
        finally:
            self._link.ask("end_echo", port=port)

    def sound(self, address: str, port: int) -> Mapping[str, Any]:
        """Have the agent send probes; there are no exchanges with a host that does not answer."""
        try:
            seen: dict[str, Any] = json.loads(self._link.ask("sound", address=address, port=port).data)
        except Refused as refused:
            raise RunFailed(f"{self.name} cannot ask {address}: {_reason(refused)}") from refused
        return seen

    def fill(self, address: str, port: int, seconds: float) -> Mapping[str, float]:
        """Have the agent measure a connection's rate."""
        try:
            return self._link.ask("fill", address=address, port=port, seconds=seconds).fields
        except Refused as refused:
            raise RunFailed(f"no data come from {self.name} to {address}: {_reason(refused)}") from refused

    def _parts(self, path: str, *, regular: bool = False) -> Iterator[bytes]:
        offset, whole = 0, False
        while not whole:
            answer = self._link.ask("read", path=path, offset=offset, limit=_PART, regular=regular)
            yield answer.data
            offset, whole = offset + len(answer.data), answer.fields["whole"]


def _parts_of(content: bytes) -> Iterator[bytes]:
    return (content[start : start + _PART] for start in range(0, len(content), _PART))


def _parts_from(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(_PART):
        yield part


def _as_it_was(place: Path, entry: Mapping[str, Any]) -> None:
    """Set mode and time, as a copy of a tree keeps them."""
    place.chmod(entry["mode"])
    os.utime(place, ns=(entry["modified_ns"], entry["modified_ns"]))


def _reason(refused: Refused) -> str:
    if refused.kind == "absent":
        return os.strerror(2)
    return refused.what if refused.errno is None else os.strerror(refused.errno)


def _short_command(argv: Sequence[str]) -> str:
    """The program and its first argument: enough to identify it, too little to reveal a password."""
    return " ".join([Path(argv[0]).name, *argv[1:2]])
