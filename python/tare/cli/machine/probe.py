"""`tare probe`: replace this process by tare-probe, which is found where tare is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from tare.errors import EnvironmentLacks
from tare.sites.binaries import PROBE, candidates

_NO_COMMAND = {"-h", "--help", "-V", "--version"}


def probe(context: typer.Context) -> None:
    """Record, show, export or serve (`--prometheus :PORT`) the kernel's counters: runs tare-probe."""
    program = next((path for path in candidates(PROBE) if os.access(path, os.X_OK)), None)
    if program is None:
        raise EnvironmentLacks("tare-probe is missing", hint=PROBE.hint)
    sys.stdout.flush()
    os.execv(program, [PROBE.name, *arguments(context.args)])  # noqa: S606 - in place of this process, which has no more to do


def arguments(given: Sequence[str]) -> list[str]:
    """Arguments for tare-probe; options without a command belong to `serve`."""
    if given and given[0].startswith("-") and given[0] not in _NO_COMMAND:
        return ["serve", *given]
    return list(given) or ["--help"]
