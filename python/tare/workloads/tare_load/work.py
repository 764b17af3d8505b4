"""Work for tare-load: the user's own job, a script of sysbench, or YCSB's core workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tare.errors import StudyError

PROTOCOLS: Mapping[str, str] = {
    "echo": "redis",
    "redis": "redis",
    "valkey": "redis",
    "postgresql": "postgresql",
    "mariadb": "mysql",
    "mysql": "mysql",
    "cassandra": "cql",
    "cassandra-5": "cql",
    "mongodb": "mongodb",
    "ferretdb": "mongodb",
}
"""Database → protocol that tare-load uses with it."""
LOAD_CONNECTIONS, LOAD_PIPELINE = 4, 64


@dataclass(frozen=True)
class Invocation:
    """One call of tare-load: its subcommand, options and files, and statements that the server executes first.

    `names_schema`: connections select the schema, as the statements do not name it. For a load: `rows`, which
    determine its time limit, and `right`, the number of operations that must succeed, if known.
    """

    command: str
    options: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    names_schema: bool = True
    rows: int = 0
    right: int | None = None


class Work(Protocol):
    """What tare-load sends, and how its data are loaded."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the operations in tare-load's order."""
        ...

    @property
    def unit(self) -> str:
        """Name of what is counted, such as `transactions`."""
        ...

    @property
    def ends_after(self) -> int | None:
        """Number of operations that end the measure phase; `None`: only time ends it."""
        ...

    def has_steps(self, protocol: str) -> bool:
        """Whether an operation takes several requests, each of which waits for the reply before."""
        ...

    def dataset(self) -> Mapping[str, str | int]:
        """All that determines the loaded data, and nothing else; empty if nothing is loaded."""
        ...

    def load_invocation(self, protocol: str, run_dir: str) -> Invocation:
        """Describe the load. Raises `StudyError` if there is none, or the database does not support the work."""
        ...

    def measure_invocation(self, protocol: str, run_dir: str, measure_s: float) -> Invocation:
        """Describe the measure phase. Raises `StudyError` if the database does not support the work."""
        ...


def protocol_of(database: str) -> str:
    """Protocol of a database. Raises `StudyError` if tare-load does not support it."""
    protocol = PROTOCOLS.get(database)
    if protocol is None:
        raise StudyError(f"tare-load does not support {database}", hint=f"use {', '.join(PROTOCOLS)}")
    return protocol
