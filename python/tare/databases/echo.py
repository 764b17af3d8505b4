"""A server that does next to nothing (`tare-load echo`), to measure what the path of a request costs.

It speaks Redis' protocol and keeps no data; it answers `GET N` with N bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.errors import RunFailed, StudyError

PROGRAM, SECRET_FILE = "tare-load", "echo.secret"
_TIMEOUT_S = 60.0
"""A program that starts in an emulated virtual machine may take more than 10 s."""


class Echo:
    """The echo server: one process with one thread. Raises `StudyError` for any setting, as it has none."""

    per_run: ClassVar[frozenset[str]] = frozenset()
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = {}
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Only check that the program runs, as the server keeps no data."""
        _must_have_no_settings(plan)
        return ServerCommand(argv=(PROGRAM, "--version"), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground; the password is in a separate file."""
        _must_have_no_settings(plan)
        argv = (PROGRAM, "echo", f"--address={plan.listen}:{plan.port}", f"--password-file={_secret(plan)}")
        return ServerCommand(argv=argv, env={}, files={SECRET_FILE: f"{plan.secrets.password}\n"})

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether PING is answered."""
        return self._ask(plan, inside, "PING") == "PONG"

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read from INFO the program's version and its number of threads."""
        text = self._ask(plan, inside, "INFO")
        facts = dict(line.split(":", 1) for line in (text or "").splitlines() if ":" in line)
        if "tare_version" not in facts:
            raise RunFailed("the echo server does not report its version")
        return facts

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask the server to stop."""
        if self._ask(plan, inside, "SHUTDOWN") != "OK":
            raise RunFailed("the echo server did not let tare shut it down")

    def _ask(self, plan: ServerPlan, inside: Exec, question: str) -> str | None:
        server = f"--address={plan.own_address}:{plan.port}"
        argv = (PROGRAM, "ask", server, f"--password-file={_secret(plan)}", question)
        done = inside(argv, _TIMEOUT_S, b"")
        return done.text.strip() if done.code == 0 else None


def _secret(plan: ServerPlan) -> str:
    return f"{plan.run_dir}/{SECRET_FILE}"


def _must_have_no_settings(plan: ServerPlan) -> None:
    if plan.settings:
        name = next(iter(plan.settings))
        raise StudyError(
            f"the echo server has no setting {name!r}", hint="it has no settings: leave `settings` out"
        )
