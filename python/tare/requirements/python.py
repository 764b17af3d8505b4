"""The host's own Python."""

from __future__ import annotations

from collections.abc import Iterator

from tare.requirements import HostPlan, Lack, Requirement

_CALL_S = 30.0


def _python(there: HostPlan) -> Iterator[Lack]:
    argv = ["sh", "-c", "command -v python3"]
    if there.host.run(argv, timeout_s=_CALL_S, check=False).code != 0:
        yield Lack("it is missing", "install it")


PYTHON = Requirement(
    "python3",
    needed_by="bare tasks and the cost of monitors",
    tried_how="`command -v python3`",
    hint="install it",
    ask=_python,
    essential=True,
)
