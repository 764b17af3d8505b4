"""What a server's own log says of what it did not get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.traps.of_log import SENTENCES, fallbacks
from tare.traps.trap import load_traps

LOGS = (
    (
        "io-uring-forbidden",
        "2025-09-17 13:31:01 0 [Warning] mariadbd: io_uring_queue_init() failed with EPERM: sysctl\n",
    ),
    ("io-uring-forbidden", "create_uring failed: falling back to libaio\n"),
    ("io-uring-forbidden", "2022-02-22 11:27:13 0 [Warning] mysqld: io_uring_queue_init() failed with errno 1\n"),
    ("io-uring-forbidden", "[Warning] InnoDB: liburing disabled: falling back to innodb_use_native_aio=OFF\n"),
    ("nofile-low", "[Warning] Could not increase number of max_open_files to more than 1024 (request: 32184)\n"),
    ("nofile-low", "2026-11-30 13:49:04 0 [Warning] Changed limits: max_open_files: 1024  table_cache: 421\n"),
    (
        "nofile-low",
        "1:M 02 Dec 2024 02:45:31.284 # maxclients has been reduced to 992 to compensate for low ulimit\n",
    ),
    (
        "somaxconn-low",
        "# WARNING: The TCP backlog setting of 511 cannot be enforced because /proc/sys/net/core/somax\n",
    ),
    ("memlock-low", "WARN  [main] Unable to lock JVM memory (ENOMEM). This can result in part of the JVM being\n"),
    (
        "shm-64m",
        '2026-11-30 UTC [17] ERROR:  could not resize shared memory segment "/PostgreSQL.18" to 67244032\n',
    ),
)
"""Trap, and what real servers printed of it."""


@pytest.mark.parametrize(("trap", "line"), LOGS)
def test_a_sentence_is_quoted_without_time_and_with_its_trap(trap: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "sut.stderr").write_text(f"ready\n{line}{line}")
    quoted = fallbacks(tmp_path)
    assert quoted
    assert all(notice.endswith(f"(a sign of the trap {trap})") and "20" + "2" not in notice for notice in quoted)


def test_every_sentence_has_a_trap_of_the_catalogue() -> None:
    assert set(SENTENCES.values()) <= {each.id for each in load_traps()}


def test_only_logs_of_servers_are_read_and_each_sentence_once(tmp_path: Path) -> None:
    line = LOGS[1][1]
    assert fallbacks(tmp_path / "none") == ()
    (tmp_path / "measure.stderr").write_text(line)
    assert fallbacks(tmp_path) == ()
    for name in ("sut-1.stderr", "sut-2.log"):
        (tmp_path / name).write_text(line)
    assert len(fallbacks(tmp_path)) == 1


def test_a_sentence_at_the_end_of_a_long_log_is_found(tmp_path: Path) -> None:
    (tmp_path / "sut.log").write_text("x" * (5 << 20) + "\nmaxclients has been reduced to 992 to compensate\n")
    assert "reduced to 992" in fallbacks(tmp_path)[0]
