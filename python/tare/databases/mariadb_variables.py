"""The server's variables: how `SHOW GLOBAL VARIABLES` is read, and which of them differ from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tare.errors import RunFailed

FOLLOWS: Mapping[str, frozenset[str]] = {
    "sut.limits.cpus": frozenset({"thread_pool_size"}),
    "sut.limits.nofile": frozenset(
        {"open_files_limit", "max_connections", "table_open_cache", "innodb_open_files"}
    ),
    "sut.settings.innodb_buffer_pool_size": frozenset({"innodb_buffer_pool_chunk_size"}),
    "sut.settings.innodb_io_capacity": frozenset({"innodb_io_capacity_max"}),
    "sut.settings.max_connections": frozenset({"back_log", "open_files_limit", "thread_cache_size"}),
    "sut.settings.table_open_cache": frozenset({"innodb_open_files", "open_files_limit"}),
}
"""What the server sizes by something else unless it is told (the pages of these variables in MariaDB's manual)."""

PER_RUN: frozenset[str] = frozenset(
    {
        # where this server listens and what its machine is called
        "bind_address", "hostname", "port", "report_host", "report_port", "wsrep_node_address",
        "wsrep_node_incoming_address", "wsrep_node_name",
        # files whose default names have the machine's name in them
        "general_log_file", "log_slow_query_file", "slow_query_log_file",
        # made from the machine's MAC address and the port
        "server_uid",
        # what has been written so far
        "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos",
    }
)  # fmt: skip
"""May differ between two runs, or two arms, that are equal in all that matters. All others must agree."""

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}


def parse_variables(batch: str) -> Mapping[str, str]:
    """Name → value from `mariadb --batch --skip-column-names`; raises `RunFailed` on anything else.

    In batch mode fields are parted by tabs, and line feed, tab, NUL and backslash within them are escaped.
    """
    variables: dict[str, str] = {}
    for line in batch.split("\n"):
        if not line:
            continue
        name, tab, value = line.partition("\t")
        if not tab or "\t" in value or not name or name in variables:
            raise RunFailed(f"the server's variables cannot be read: {line[:80]!r}")
        variables[name] = _ESCAPED.sub(_unescape, value)
    if not variables:
        raise RunFailed("the server told no variables")
    return variables


def _unescape(match: re.Match[str]) -> str:
    return _MEANING.get(match.group(1), match.group(1))
