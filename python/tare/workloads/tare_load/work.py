"""What tare-load is given to send: a job of one's own, a script of sysbench's, or YCSB's core workload."""

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
"""Database → what tare-load is to speak with it."""
LOAD_CONNECTIONS, LOAD_PIPELINE = 4, 64


@dataclass(frozen=True)
class Sending:
    """One call of tare-load: its subcommand, options and files, and statements that the server executes before.

    `names_schema`: statements name no database of their own, so that each connection gets one. Of a load:
    `rows`, from which its time limit follows, and `right`: how many operations it must tell, where that is known.
    """

    command: str
    options: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    names_schema: bool = True
    rows: int = 0
    right: int | None = None


class Work(Protocol):
    """What is sent, and how its data are loaded."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the operations, as tare-load has them, in order."""
        ...

    @property
    def unit(self) -> str:
        """What operations are called."""
        ...

    @property
    def ends_after(self) -> int | None:
        """Operations after which the measure phase ends; `None` where time alone ends it."""
        ...

    def has_steps(self, protocol: str) -> bool:
        """Whether an operation waits for a reply before it goes on."""
        ...

    def dataset(self) -> Mapping[str, str | int]:
        """What determines the loaded data, and nothing else; empty where nothing is loaded."""
        ...

    def filling(self, protocol: str, run_dir: str) -> Sending:
        """Raises `StudyError` where nothing is loaded, or the database cannot have it."""
        ...

    def driving(self, protocol: str, run_dir: str, measure_s: float) -> Sending:
        """Raises `StudyError` where the database cannot have it."""
        ...


def protocol_of(database: str) -> str:
    """Raises `StudyError` for a database that tare-load does not speak with."""
    protocol = PROTOCOLS.get(database)
    if protocol is None:
        raise StudyError(f"tare-load does not support {database}", hint=f"it does with {', '.join(PROTOCOLS)}")
    return protocol
