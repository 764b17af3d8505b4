"""What a disk may hold after a crash: each system call on a store, recorded, cut anywhere, reordered within POSIX.

A write, a new name or a lost one is on the disk once it was synced (fsync(2) of its file or directory, sync(2)).
Before that a loss of power may keep it, drop it, or keep some of its sectors, whatever came later: fsync(2) and
rename(2) promise no more. Files are known by number, so that data and names are lost apart from each other.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CALLS = (
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,sync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,"
    "rmdir"
)
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += +(-?\d+)")
_FD = re.compile(r'(?:\d+|AT_FDCWD)<"?([^>"]*)"?>')
_HEX = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_SECTOR = 512
MARK = b"committed "
"""What the program prints once a record is to survive anything."""


@dataclass(frozen=True)
class Op:
    """One change. `kind`: data, size, name, gone, sync, or mark; `file`: number of the file or directory."""

    kind: str
    file: int = 0
    at: int = 0
    data: bytes = b""
    name: str = ""
    target: int = 0


def recorded(program: str, store: Path, log: Path) -> list[Op]:
    """Every change that the Python `program` makes below `store`, in order, with its marks."""
    argv = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={_CALLS}", "-o", str(log)]
    subprocess.run([*argv, sys.executable, "-c", program, str(store)], check=True, timeout=120, capture_output=True)
    return list(_Parser(store).ops(log.read_text().splitlines()))


def _text(quoted: str) -> bytes:
    return bytes.fromhex(quoted.replace("\\x", ""))


@dataclass
class _Parser:
    """Names and descriptors to numbers of files; 0 is the store's own directory."""

    root: Path
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    made: int = 0

    def ops(self, lines: Sequence[str]) -> Iterator[Op]:
        for line in _whole(lines):
            match = _LINE.match(line)
            if match is not None and int(match[3]) >= 0:
                yield from self._op(match[1], match[2], int(match[3]))

    def _inside(self, path: bytes | str) -> str | None:
        text = path.decode() if isinstance(path, bytes) else path
        root = str(self.root)
        return text[len(root) :].lstrip("/") if text == root or text.startswith(f"{root}/") else None

    def _new(self, path: str) -> Iterator[Op]:
        self.made += 1
        self.numbers[path] = self.made
        folder, _, name = path.rpartition("/")
        yield Op("name", self.numbers[folder], name=name, target=self.made)

    def _op(self, call: str, words: str, result: int) -> Iterator[Op]:
        quoted = [_text(each) for each in _HEX.findall(words)]
        if call == "sync":
            yield from (Op("sync", number) for number in dict.fromkeys(self.numbers.values()))
        elif call in {"mkdir", "mkdirat", "openat"}:
            path = self._inside(quoted[0])
            if path and path not in self.numbers and (call != "openat" or "O_CREAT" in words):
                yield from self._new(path)
                if call != "openat":
                    yield Op("folder", self.made)
            if path and call == "openat" and "O_TRUNC" in words:
                yield Op("size", self.numbers[path], at=0)
        elif call.startswith(("rename", "unlink", "rmdir")):
            yield from self._renamed(call, [self._inside(each) for each in quoted])
        else:
            yield from self._on_descriptor(call, words, quoted, result)

    def _renamed(self, call: str, paths: list[str | None]) -> Iterator[Op]:
        source = paths[0]
        if source is None:
            return
        folder, _, name = source.rpartition("/")
        if not call.startswith("rename"):
            yield Op("gone", self.numbers[folder], name=name)
            self.numbers.pop(source)
            return
        target = paths[1]
        assert target is not None
        to, _, called = target.rpartition("/")
        yield Op("name", self.numbers[to], name=called, target=self.numbers[source])
        yield Op("gone", self.numbers[folder], name=name)
        moved = {
            path: number for path, number in self.numbers.items() if path == source or path.startswith(f"{source}/")
        }
        for path, number in moved.items():
            del self.numbers[path]
            self.numbers[target + path[len(source) :]] = number

    def _on_descriptor(self, call: str, words: str, quoted: list[bytes], result: int) -> Iterator[Op]:
        match = _FD.search(words)
        if call == "write" and quoted and quoted[-1].startswith(MARK):
            yield Op("mark", data=quoted[-1])
        path = self._inside(_text(match[1]) if match and "\\x" in match[1] else match[1] if match else "")
        if path is None or path not in self.numbers:
            return
        number = self.numbers[path]
        if call in {"fsync", "fdatasync"}:
            yield Op("sync", number)
        elif call == "ftruncate":
            yield Op("size", number, at=int(words.rsplit(",", 1)[1]))
        elif call == "pwrite64":
            yield Op("data", number, at=int(words.rsplit(",", 1)[1]), data=quoted[-1][:result])
        elif call == "write":
            yield Op("data", number, at=-1, data=quoted[-1][:result])


def _whole(lines: Sequence[str]) -> Iterator[str]:
    """Calls that another thread's broke in two, put together again."""
    begun: dict[str, str] = {}
    for line in lines:
        process, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[process] = line.removesuffix("<unfinished ...>").rstrip()
        elif (resumed := re.match(r" *<\.\.\. \w+ resumed>", rest)) is not None:
            yield begun.pop(process) + rest[resumed.end() :]
        else:
            yield line


@dataclass(frozen=True)
class Crash:
    """A crash after so many changes. `lost`: a seed by which unsynced ones are dropped; `None`: of tare alone."""

    after: int
    lost: int | None = None


def promised(ops: Sequence[Op], crash: Crash) -> int:
    """How many records the program had been told are safe."""
    return sum(op.kind == "mark" for op in ops[: crash.after])


def left_by(ops: Sequence[Op], crash: Crash, place: Path) -> None:
    """Put into the new directory `place` what a disk may hold after that crash."""
    kept = list(_kept(ops[: crash.after], crash.lost))
    content: dict[int, bytearray] = {}
    names: dict[int, dict[str, int]] = {0: {}}
    for op in kept:
        held = content.setdefault(op.file, bytearray())
        if op.kind == "folder":
            names.setdefault(op.file, {})
        elif op.kind == "name":
            names.setdefault(op.file, {})[op.name] = op.target
        elif op.kind == "gone":
            names.setdefault(op.file, {}).pop(op.name, None)
        elif op.kind == "size":
            held[:] = held[: op.at].ljust(op.at, b"\0")
        elif op.kind == "data":
            at = len(held) if op.at < 0 else op.at
            held[:] = held.ljust(at, b"\0")
            held[at : at + len(op.data)] = op.data
    folders = {op.file for op in ops if op.kind == "folder"} | {0}
    _write(0, place, names, content, folders)


def _write(
    number: int, place: Path, names: dict[int, dict[str, int]], content: dict[int, bytearray], folders: set[int]
) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, inner in names.get(number, {}).items():
        if inner in folders:
            _write(inner, place / name, names, content, folders)
        elif not name.endswith("-shm"):  # shared memory: SQLite makes it anew
            (place / name).write_bytes(content.get(inner, b""))


def _kept(ops: Sequence[Op], lost: int | None) -> Iterator[Op]:
    if lost is None:
        yield from ops
        return
    chance = random.Random(lost)
    share = chance.choice((0.1, 0.5, 0.9, 1.0))
    synced: dict[int, int] = {}
    for place, op in enumerate(ops):
        if op.kind == "sync":
            synced[op.file] = place
    for place, op in enumerate(ops):
        safe = place < synced.get(op.file, -1) or op.kind in {"folder", "sync", "mark"}
        if safe or chance.random() >= share:
            yield op
        elif op.kind == "data" and op.at >= 0 and chance.random() < 0.5:
            cut = chance.randrange(len(op.data) // _SECTOR + 1) * _SECTOR
            yield Op("data", op.file, op.at, op.data[:cut])
