"""Settings that servers derive from their limits, as read back from them when each limit was lowered."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.run.parity.test_compare import record, study

from tare.databases.registry import DATABASES
from tare.run.parity.compare import differences
from tare.run.parity.references import known_variables_of

MOVED: Mapping[tuple[str, str], Mapping[str, tuple[str, str]]] = {
    # `nofile` 65536 and 1024
    ("mariadb", "sut.limits.nofile"): {
        "innodb_open_files": ("2000", "421"), "open_files_limit": ("20000", "1024"),
        "table_open_cache": ("2000", "421"), "table_open_cache_instances": ("4", "1"),
    },
    ("mysql", "sut.limits.nofile"): {
        "innodb_open_files": ("4000", "431"), "open_files_limit": ("20000", "1024"),
        "performance_schema_digests_size": ("10000", "5000"),
        "performance_schema_events_stages_history_long_size": ("10000", "1000"),
        "performance_schema_events_statements_history_long_size": ("10000", "1000"),
        "performance_schema_events_transactions_history_long_size": ("10000", "1000"),
        "performance_schema_events_waits_history_long_size": ("10000", "1000"),
        "table_definition_cache": ("2000", "615"), "table_open_cache": ("4000", "431"),
    },
    ("redis", "sut.limits.nofile"): {"maxclients": ("10000", "992")},
    ("valkey", "sut.limits.nofile"): {"maxclients": ("10000", "992")},
    # data on a file system, and in the container's layer
    ("mariadb", "sut.storage.kind"): {
        "innodb_log_file_buffering": ("OFF", "ON"), "innodb_log_write_ahead_size": ("4096", "512"),
    },
    ("mariadb", "sut.settings.character_set_server"): {
        "character_set_client": ("utf8mb4", "latin1"), "character_set_connection": ("utf8mb4", "latin1"),
        "character_set_database": ("utf8mb4", "latin1"), "character_set_results": ("utf8mb4", "latin1"),
        "collation_connection": ("utf8mb4_general_ci", "latin1_swedish_ci"),
        "collation_server": ("utf8mb4_general_ci", "latin1_swedish_ci"),
    },
    # CPUs 0-1 and 0
    ("mariadb", "sut.limits.cpus"): {"thread_pool_size": ("2", "1")},
}  # fmt: skip


@pytest.mark.parametrize(("database", "limit"), MOVED)
def test_what_follows_a_limit_is_no_difference_where_the_limit_is_a_factor(database: str, limit: str) -> None:
    known = known_variables_of(DATABASES, database)
    wide, narrow = (
        record("host", effective={name: each[side] for name, each in MOVED[database, limit].items()})
        for side in (0, 1)
    )
    narrow = narrow.model_copy(update={"arm": "bridge", "levels": {"path": "bridge"}})
    assert not differences(study((limit,)), wide, narrow, known)
    unexplained = differences(study(("sut.log_driver",)), wide, narrow, known)
    assert {each.name.removeprefix("variable ") for each in unexplained} == set(MOVED[database, limit])
