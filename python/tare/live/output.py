"""Output of a current run's programs, read from where it is written.

Only regular files with known names are read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from tare.live.now import Current, Now
from tare.report.plain import plain

TAIL_BYTES = 8192
TAIL_LINES = 30
LONGEST_LINE = 300
MOST_FILES = 12
CHUNK_BYTES = 4 << 20
_TOKEN = re.compile(r"[0-9a-f]{12}")
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_PASSWORD = re.compile(r"(?<![0-9A-Fa-f])[0-9a-f]{48}(?![0-9A-Fa-f])")
"""Passwords as `run.credentials` makes them. They are masked before output is stored; here it is not stored yet."""
_MASK = "[password]"
_TOO_LONG = "\N{HORIZONTAL ELLIPSIS} (one line, too long to be shown)"


@dataclass(frozen=True)
class Tail:
    """The end of one file as lines that are fit to be shown."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A file that a program's output goes to. `decode`: the file's bytes → printed text."""

    name: str
    path: Path
    decode: Callable[[bytes], str]


def decode_text(content: bytes) -> str:
    """Decode output that a program wrote itself."""
    return content.decode(errors="replace")


def decode_engine_log(stream: str | None, content: bytes) -> str:
    """Decode output that an engine's `json-file` driver wrote, one object per line.

    `stream`: one of the two, `None` for both.
    """
    printed = []
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and stream in (None, entry.get("stream")):
            printed.append(str(entry.get("log", "")))
    return "".join(printed)


def container_log(cgroup: str | None, engine_root: str) -> Path | None:
    """Where Docker keeps the output of the container with that control group, without asking the engine."""
    match = _CONTAINER.search(cgroup or "")
    return Path(engine_root, "containers", match[0], f"{match[0]}-json.log") if match else None


def raw_of(now: Now, run: Current) -> Path | None:
    """Directory of a current run's output; `None` if its token is not one of tare's."""
    return Path(now.work) / run.token / "raw" if _TOKEN.fullmatch(run.token) else None


def outputs_of(raw: Path, containers: Mapping[str, Path]) -> Iterator[Source]:
    """All existing output, the latest written first. `containers`: program → its file in the engine."""
    try:
        files = [Path(entry.path) for entry in os.scandir(raw) if entry.name.endswith((".stdout", ".stderr"))]
    except OSError:
        files = []
    own = [Source(path.name, path, decode_text) for path in files]
    others = [Source(name, path, partial(decode_engine_log, None)) for name, path in containers.items()]
    aged = {source: _age(source.path) for source in (*own, *others)}
    yield from sorted((source for source, age in aged.items() if age), key=lambda source: -aged[source])


def tails(sources: Iterable[Source]) -> Iterator[Tail]:
    """Ends of all outputs that have any."""
    for source in islice(sources, MOST_FILES):
        shown = lines_of(read_from(source.path, -TAIL_BYTES), source.decode)
        if shown:
            yield Tail(plain(source.name, 60), shown)


def lines_of(content: bytes, decode: Callable[[bytes], str] = decode_text) -> tuple[str, ...]:
    """Last complete lines of a text: a cut line could contain half a password."""
    begin = content.find(b"\n") + 1 if len(content) == TAIL_BYTES else 0
    whole = _PASSWORD.sub(_MASK, decode(content[begin : content.rfind(b"\n") + 1]))
    lines = whole.replace("\r", "\n").split("\n")
    shown = tuple(plain(line.replace("\t", "    "), LONGEST_LINE) for line in lines if line.strip())[-TAIL_LINES:]
    return shown or ((_TOO_LONG,) if len(content) > LONGEST_LINE else ())


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def written_at(path: Path) -> float | None:
    """When a file was last written to, in seconds since the epoch; `None` if unknown."""
    age = _age(path)
    return age / 1e9 if age else None


def read_from(path: Path, offset: int, most: int = CHUNK_BYTES) -> bytes:
    """Content of a file from `offset` on (below zero: from its end); empty if there is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return b""
        begin = offset if offset >= 0 else max(0, about.st_size + offset)
        return os.pread(descriptor, most, begin)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
