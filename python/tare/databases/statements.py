"""Statements that a server is told before data are loaded, for clients that make no table of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tare.databases import Exec, ServerPlan, cassandra, mariadb, postgresql
from tare.errors import StudyError

Tell = Callable[[ServerPlan, Exec, str], None]

TELL: Mapping[str, Tell] = {
    "cassandra": cassandra.tell,
    "cassandra-5": cassandra.tell,
    "mariadb": mariadb.tell,
    "postgresql": postgresql.tell,
}
"""Database → who has it carry out one statement, in the schema of the runs where it has one."""


def tell(database: str, plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Raises `RunFailed` with the server's words, `StudyError` of a database that takes no statements here."""
    if database not in TELL:
        raise StudyError(f"{database} is told no statements", hint=f"{', '.join(TELL)} are")
    TELL[database](plan, inside, statement)
