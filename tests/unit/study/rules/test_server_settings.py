"""Values that no server takes are refused before an image is built."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.model import Scalar
from tare.study.reading.load import loads
from tare.study.registry import Registry, built_in


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1.0e308", "cannot be 1e.308"),
        ("1" + 30 * "0", "cannot be 1e.30"),
        (r'"a\nb"', "non-printable characters"),
        (r'"a\u200Eb"', "non-printable characters"),
        (r'"\0"', "non-printable characters"),
        ('"' + 3000 * "x" + '"', "has 3000 characters"),
    ],
    ids=["float", "int", "line-break", "right-to-left", "nul", "long"],
)
def test_what_no_server_takes_is_refused_with_its_place(
    text: str, registry: Registry, value: str, why: str
) -> None:
    with pytest.raises(StudyError, match=rf"sut\.settings\.innodb_flush_method: .*{why}"):
        loads(text.replace("O_DIRECT", value), registry)


@pytest.mark.parametrize("value", ['""', "-1", "true", "18446744073709551615", "0.5"])
def test_what_some_server_takes_is_the_database_s_to_judge(text: str, registry: Registry, value: str) -> None:
    assert loads(text.replace("innodb_flush_method: O_DIRECT", f"init_connect: {value}"), registry).arms


@pytest.mark.parametrize(
    ("database", "name", "value", "why"),
    [
        ("mariadb", "innodb_buffer_pool_size", -1, "0 or more"),
        ("mariadb", "innodb_buffer_pool_size", True, "must be a size"),
        ("mariadb", "innodb-log-write-ahead-size", -1, "0 or more"),
        ("mariadb", "innodb_max_dirty_pages_pct_lwm", "../../etc", "0 or more"),
        ("mariadb", "innodb_log_file_buffering", "", "true or false"),
        ("mariadb", "innodb_flush_method", "<script>", "one of the server's words"),
        ("postgresql", "synchronous_commit", "<script>", "one of the server's words"),
        ("postgresql", "max_connections", "many", "0 or more"),
        ("postgresql", "fsync", "maybe", "true or false"),
        ("postgresql", "random_page_cost", "cheap", "0 or more"),
        ("redis", "save", "../../etc", "pairs of seconds"),
        ("redis", "hz", -1, "0 or more"),
        ("redis", "appendonly", "maybe", "true or false"),
        ("cassandra", "read_request_timeout_in_ms", -1, "0 or more"),
    ],
)
def test_a_value_of_another_kind_than_the_setting_s_is_refused(
    database: str, name: str, value: Scalar, why: str
) -> None:
    with pytest.raises(StudyError, match=why):
        built_in().databases[database]({name: value})


@pytest.mark.parametrize(
    ("database", "name", "value"),
    [
        ("mariadb", "innodb_buffer_pool_size", "128M"),
        ("mariadb", "innodb_max_dirty_pages_pct_lwm", 0.5),
        ("mariadb", "innodb_log_file_buffering", "ON"),
        ("mariadb", "innodb_flush_method", "O_DIRECT_NO_FSYNC"),
        ("mariadb", "optimizer_switch", "mrr=on,mrr_cost_based=off"),
        ("mariadb", "binlog_expire_logs_seconds", 0),
        ("postgresql", "shared_buffers", "128MB"),
        ("postgresql", "checkpoint_timeout", "15min"),
        ("postgresql", "autovacuum_vacuum_cost_delay", -1),
        ("postgresql", "default_transaction_isolation", "read committed"),
        ("postgresql", "jit", "off"),
        ("redis", "save", ""),
        ("redis", "save", "900 1 300 10"),
        ("redis", "maxmemory", "512mb"),
        ("cassandra", "key_cache_size_in_mb", "auto"),
    ],
)
def test_what_a_setting_takes_passes(database: str, name: str, value: Scalar) -> None:
    built_in().databases[database]({name: value})
