"""What a server is told before data are loaded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.abilities import STATEMENT_RUNNERS, execute_statement
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

PLAN = ServerPlan("/data", "/run/tare", "127.0.0.1", 28042, {}, Secrets("u", "p"))
STATEMENT = "CREATE TABLE t (a TEXT)"


@pytest.mark.parametrize("database", list(STATEMENT_RUNNERS))
def test_the_server_is_told_and_its_refusal_is_one_line(database: str) -> None:
    asked: list[tuple[Sequence[str], bytes]] = []

    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        assert timeout_s > 0
        asked.append((argv, stdin))
        return Completed(tuple(argv), 0, b"")

    execute_statement(database, PLAN, inside, STATEMENT)
    ((argv, stdin),) = asked
    assert STATEMENT in " ".join(argv) + stdin.decode(errors="replace")
    failing = Completed(("x",), 1, b"", b"ERROR: table t exists\n")
    with pytest.raises(
        RunFailed, match="did not let tare create what was requested: ERROR: table t exists"
    ) as error:
        execute_statement(database, PLAN, lambda _argv, _timeout, _stdin: failing, STATEMENT)
    assert "\n" not in error.value.what


def test_a_database_without_statements_is_told_none() -> None:
    with pytest.raises(StudyError, match="redis does not support setup statements"):
        execute_statement("redis", PLAN, lambda _argv, _timeout, _stdin: Completed((), 0, b""), STATEMENT)
