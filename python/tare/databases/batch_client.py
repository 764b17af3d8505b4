"""Command-line clients of the MySQL family: a statement in, tab-separated lines out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tare.databases import Exec, ServerPlan
from tare.errors import RunFailed
from tare.sites import Completed

OS_USER = "mysql"
"""User that the image runs as: the only one with all rights, through the socket and without a password."""
SCHEMA = "tare"
"""The one database that the run's user may use."""
CLIENT_FILE = "client.cnf"

QUERY_TIMEOUT_S = 60.0
"""A client that starts in an emulated virtual machine may take more than 10 s."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
_PLAIN = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class BatchClient:
    """`program`: the client in the image; `product`: what a message calls the server."""

    program: str
    product: str

    def execute(self, plan: ServerPlan, inside: Exec, sql: str, *, timeout_s: float = QUERY_TIMEOUT_S) -> Completed:
        """Execute statements as `OS_USER`; returns whatever the exit code is."""
        argv = (
            self.program,
            f"--defaults-file={plan.run_dir}/{CLIENT_FILE}",
            "--batch",
            "--skip-column-names",
            f"--execute={sql}",
        )
        return inside(argv, timeout_s, b"")

    def must(self, done: Completed, what: str) -> Completed:
        """Return a call that succeeded; raise `RunFailed` with the server's last line of output if it failed."""
        if done.code != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            reason = words[-1] if words else f"exit code {done.code}"
            raise RunFailed(f"{self.product} did not let tare {what}: {reason}")
        return done

    def execute_statement(self, plan: ServerPlan, inside: Exec, statement: str) -> None:
        """Execute a statement in the schema of the runs."""
        self.must(self.execute(plan, inside, f"USE {SCHEMA}; {statement}"), "create what was requested")


def parse_variables(batch: str) -> Mapping[str, str]:
    """Parse name → value from a client's `--batch --skip-column-names`; raises `RunFailed` on anything else.

    In batch mode, tabs separate fields; line feed, tab, NUL and backslash within fields are escaped.
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
        raise RunFailed("the server returned no variables")
    return variables


def plain(word: str) -> str:
    """Return a generated name or password; one that would need quoting is a bug of tare: `ValueError`."""
    if not _PLAIN.fullmatch(word):
        raise ValueError("user and password must be letters, digits and underscores")
    return word


def _unescape(match: re.Match[str]) -> str:
    return _MEANING.get(match.group(1), match.group(1))
