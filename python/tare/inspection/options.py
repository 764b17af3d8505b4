"""The few settings of a server that decide a trap, by its command line and option files; nothing else is kept.

Command lines and files may hold passwords: they are searched for these settings, and never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tare.sites import Host
from tare.sites.reading import answer, text

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_CACHE = {
    "postgresql": re.compile(r"^\s*shared_buffers\s*=?\s*'?([^'#\s]+)", re.MULTILINE),
    "mariadb": re.compile(r"^\s*(?:loose[-_])?innodb[-_]buffer[-_]pool[-_]size\s*=\s*([^#\s]+)", re.MULTILINE),
    "redis": re.compile(r"^\s*maxmemory\s+(\S+)", re.MULTILINE),
}
_CACHE |= {"mysql": _CACHE["mariadb"], "percona": _CACHE["mariadb"], "valkey": _CACHE["redis"]}
_SKIP_NAMES = re.compile(r"^\s*skip[-_]name[-_]resolve(?:\s*=\s*(\S+))?\s*$", re.MULTILINE)
_CHARACTERS = re.compile(r"^\s*character[-_]set[-_]server\s*=\s*([^#\s]+)", re.MULTILINE)
_HEAP = re.compile(r"^-Xmx(\d+)([kKmMgG]?)$")
_OPTION_FOLDERS = ("/etc/my.cnf", "/etc/mysql", "/etc/my.cnf.d")
_WRITES_OVER = frozenset({"redis", "valkey"})
MYSQL = frozenset({"mysql", "mariadb", "percona"})


@dataclass(frozen=True)
class Options:
    """Settings, each with where it was read; `None`: not set there, so that the server's default holds."""

    cache_bytes: int | None = None
    cache_from: str = "command line and option files"
    heap_bytes: int | None = None
    skip_name_resolve: bool | None = None
    """`None`: not MySQL's family."""
    character_set: str | None = None


def options_of(host: Host, pid: int, database: str, data_path: str | None, started: Sequence[str] = ()) -> Options:
    """Search the command line, and for some databases their option files as the program sees them.

    `started`: the command of its container. Redis and Valkey write over their own command line.
    """
    words = (text(host, f"/proc/{pid}/cmdline") or "").split("\0")
    root = f"/proc/{pid}/root"
    if database in _WRITES_OVER and any(started):
        words = [part for word in started for part in word.split()]
    heap = [found for word in words if (found := _HEAP.match(word))]
    sources = [("command line", _as_lines(words, database))]
    if database == "postgresql" and data_path:
        names = (f"{data_path}/postgresql.auto.conf", f"{data_path}/postgresql.conf")
        sources += [(name, text(host, f"{root}{name}") or "") for name in names]
    if database in _WRITES_OVER:
        files = [word for word in words if word.startswith("/") and word.endswith(".conf")]
        sources += [(name, text(host, f"{root}{name}") or "") for name in files]
    if database in MYSQL:
        sources += [(name.removeprefix(root), text(host, name) or "") for name in _option_files(host, root)]
    cache, place = _cache(database, sources)
    return Options(
        cache_bytes=cache,
        cache_from=place,
        heap_bytes=parse_size(heap[-1][1] + heap[-1][2]) if heap else None,
        character_set=_character_set(content for _, content in sources) if database in MYSQL else None,
        skip_name_resolve=_skips_names(content for _, content in sources) if database in MYSQL else None,
    )


def _as_lines(words: Sequence[str], database: str) -> str:
    """The command line as option files are written: `--name=value`, `-c name=value`, `--name value`."""
    lines = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "-c" and database == "postgresql":
            lines.append(following)
        elif word.startswith("--"):
            bare = word.removeprefix("--")
            lines.append(
                bare if "=" in bare or following.startswith("-") or not following else f"{bare} {following}"
            )
            if "=" not in bare and database in MYSQL:
                lines.append(bare)
    return "\n".join(lines)


def _option_files(host: Host, root: str) -> list[str]:
    """Option files of MySQL's family in the program's own root, the last read first, whose value counts."""
    places = [f"{root}{folder}" for folder in _OPTION_FOLDERS]
    wanted = ["find", "-L", *places, "-maxdepth", "2", "-name", "*.cnf", "-type", "f"]
    return sorted(set(answer(host, wanted, partial=True).splitlines()), reverse=True)


def _cache(database: str, sources: Sequence[tuple[str, str]]) -> tuple[int | None, str]:
    pattern = _CACHE.get(database)
    for place, content in sources:
        found = pattern.findall(content) if pattern is not None else []
        if found and (size := parse_size(found[-1])) is not None:
            return size, place
    return None, "command line and option files"


def _character_set(contents: Iterable[str]) -> str | None:
    return next((found[-1].strip("'\"") for content in contents if (found := _CHARACTERS.findall(content))), None)


def _skips_names(contents: Iterable[str]) -> bool:
    for content in contents:
        for value in _SKIP_NAMES.findall(content):
            return value.lower() not in {"0", "off", "false"}
    return False


def parse_size(value: str) -> int | None:
    """Bytes of a size as servers write it: `1GB`, `256M`, `134217728`; `None` if it is none."""
    found = _SIZE.match(value.strip().strip("'\""))
    return None if found is None else int(float(found[1]) * (1 << _UNITS[found[2].lower()]))
