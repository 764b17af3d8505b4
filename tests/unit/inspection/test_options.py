"""Settings by command line and option files; nothing else of them is kept."""

from __future__ import annotations

import pytest
from tests.unit.inspection.machine import PID, machine

from tare.inspection.options import options_of, parse_size
from tare.sites import Completed


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1GB", 1 << 30),
        ("'256MB'", 256 << 20),
        ("128M", 128 << 20),
        ("134217728", 134217728),
        ("8kB", 8192),
        ("on", None),
    ],
)
def test_a_size_is_read_as_servers_write_it(value: str, expected: int | None) -> None:
    assert parse_size(value) == expected


@pytest.mark.parametrize(
    ("database", "command", "expected"),
    [
        ("postgresql", "postgres -D /data -c shared_buffers=2GB", 2 << 30),
        ("mariadb", "mariadbd --innodb-buffer-pool-size=512M --password=hunter2", 512 << 20),
        ("redis", "redis-server --maxmemory 100mb --requirepass hunter2", 100 << 20),
        ("redis", "redis-server *:6379", None),
        ("nginx", "nginx --innodb-buffer-pool-size=512M", None),
    ],
)
def test_the_cache_is_read_off_the_command_line(database: str, command: str, expected: int | None) -> None:
    options = options_of(machine(command=command), PID, database, "/data")
    assert options.cache_bytes == expected
    assert "hunter2" not in repr(options)


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (("docker-entrypoint.sh", "redis-server", "--maxmemory", "100mb"), 100 << 20),
        (("sh", "-c", "exec redis-server --requirepass hunter2 --maxmemory 100mb"), 100 << 20),
        (("redis-server", "/etc/redis.conf"), 64 << 20),
        (("redis-server", "/etc/redis.conf", "--maxmemory", "100mb"), 100 << 20),
        (("redis-server",), None),
    ],
)
def test_redis_writes_over_its_command_line_so_its_containers_counts(
    started: tuple[str, ...], expected: int | None
) -> None:
    host = machine(command="redis-server *:6379")
    host.files[f"/proc/{PID}/root/etc/redis.conf"] = b"requirepass hunter2\nmaxmemory 64mb\n"
    options = options_of(host, PID, "redis", "/data", started)
    assert options.cache_bytes == expected
    assert "hunter2" not in repr(options)


def test_option_files_count_where_the_command_line_says_nothing() -> None:
    host = machine()
    host.files[f"/proc/{PID}/root/data/postgresql.conf"] = (
        b"#shared_buffers = 1GB\nshared_buffers = 128MB # small\n"
    )
    options = options_of(host, PID, "postgresql", "/data")
    assert (options.cache_bytes, options.cache_from) == (128 << 20, "/data/postgresql.conf")


@pytest.mark.parametrize(
    ("command", "file", "expected"),
    [
        ("mysqld", "", False),
        ("mysqld --skip-name-resolve", "", True),
        ("mysqld", "[mysqld]\nskip-name-resolve\n", True),
        ("mysqld", "[mysqld]\nskip_name_resolve = OFF\n", False),
    ],
)
def test_whether_names_are_looked_up(command: str, file: str, expected: bool) -> None:
    host = machine(command=command)
    place = f"/proc/{PID}/root/etc/mysql/my.cnf"
    host.files[place] = file.encode()
    host.answers["find",] = Completed(("find",), 0, place.encode())
    assert options_of(host, PID, "mysql", "/data").skip_name_resolve is expected
    assert options_of(host, PID, "postgresql", "/data").skip_name_resolve is None


def test_the_heap_is_the_last_one_named() -> None:
    host = machine(command="java -Xmx1G -Dx=y -Xmx512m org.apache.cassandra.service.CassandraDaemon")
    assert options_of(host, PID, "cassandra", None).heap_bytes == 512 << 20
