"""Sentences of a server's own log by which it says that it got less than it asked for, and went on.

They are quoted without time and process, so that all runs that meet one say the same. Each has the trap behind it.
Sources: logs of MariaDB, MySQL, Redis and PostgreSQL, quoted in the tests; Cassandra's NativeLibrary.java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tare.one_line import plain

SENTENCES: Mapping[str, str] = {
    r"io_uring_queue_init\(\) failed with (?:errno )?\w+": "io-uring-forbidden",
    r"create_uring failed: falling back to libaio": "io-uring-forbidden",
    r"liburing disabled: falling back to innodb_use_native_aio=OFF": "io-uring-forbidden",
    r"Linux Native AIO disabled": "aio-exhausted",
    r"io_setup\(\) failed with EAGAIN": "aio-exhausted",
    r"Could not increase number of max_open_files to more than \d+ \(request: \d+\)": "nofile-low",
    r"Changed limits: [a-z_]+: \d+[^\n]{0,120}": "nofile-low",
    r"maxclients has been reduced to \d+": "nofile-low",
    r"The TCP backlog setting of \d+ cannot be enforced": "somaxconn-low",
    r"Unable to lock JVM [Mm]emory": "memlock-low",
    r"could not resize shared memory segment": "shm-64m",
}
"""Pattern of a sentence → id of the trap that it is a sign of."""
_PATTERNS = {re.compile(pattern): trap for pattern, trap in SENTENCES.items()}
_FILE = re.compile(r"sut(-\d+)?\.(stderr|stdout|log)")
_MOST_BYTES = 1 << 20
"""Bytes that are read at the beginning, where servers start, and at the end of a log."""


def fallbacks(raw: Path) -> tuple[str, ...]:
    """Return a notice for each such sentence in the servers' logs among a run's raw files, once each."""
    files = sorted(path for path in raw.iterdir() if _FILE.fullmatch(path.name)) if raw.is_dir() else ()
    return tuple(dict.fromkeys(notice for path in files for notice in _of(_ends(path))))


def _of(text: str) -> Iterator[str]:
    for pattern, trap in _PATTERNS.items():
        if found := pattern.search(text):
            yield f'the server\'s log says: "{plain(found[0].strip(), 200)}" (a sign of the trap {trap})'


def _ends(path: Path) -> str:
    with path.open("rb") as log:
        first = log.read(_MOST_BYTES)
        log.seek(max(log.tell(), path.stat().st_size - _MOST_BYTES))
        return (first + b"\n" + log.read(_MOST_BYTES)).decode(errors="replace")
