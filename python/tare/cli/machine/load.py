"""`tare load`: replace this process by tare-load, which is found where tare is installed."""

from __future__ import annotations

import os
import sys

import typer

from tare.errors import EnvironmentLacks
from tare.sites.binaries import LOAD, candidates


def load(context: typer.Context) -> None:
    """Generate load for a database, closed or open loop, and measure each reply: runs tare-load."""
    program = next((path for path in candidates(LOAD) if os.access(path, os.X_OK)), None)
    if program is None:
        raise EnvironmentLacks("tare-load is missing", hint=LOAD.hint)
    sys.stdout.flush()
    os.execv(program, [LOAD.name, *(context.args or ["--help"])])  # noqa: S606 - in place of this process
