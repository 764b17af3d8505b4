"""Values that no setting of any server accepts, and where its log can go.

What one setting accepts is checked by its database.
"""

from __future__ import annotations

from collections.abc import Collection

from tare.errors import StudyError
from tare.study.model import ArmSettings, Scalar
from tare.study.rules.refusal import Refusal

_LARGEST = 2**64
"""Servers count in 64 bits."""
_LONGEST = 2000
"""Three times the longest list of options that servers accept (`optimizer_switch`)."""


def check_setting_value(name: str, value: Scalar) -> None:
    """Raise `StudyError` for a number beyond 64 bits, control characters, or an absurdly long text."""
    if isinstance(value, str):
        if len(value) > _LONGEST:
            raise StudyError(
                f"the value of the server setting {name!r} has {len(value)} characters",
                hint=f"at most {_LONGEST}",
            )
        if not value.isprintable():
            raise StudyError(
                f"the value of the server setting {name!r} contains non-printable characters: {value!r}",
                hint="write it on one line, in plain characters",
            )
    elif abs(value) > _LARGEST:
        raise StudyError(
            f"the server setting {name!r} cannot be {value:g}", hint="servers accept no number beyond 64 bits"
        )


def refuse_log(settings: ArmSettings, servers: Collection[str]) -> Refusal | None:
    """Return the reason why the SUT's output or log cannot go where the study says; `None` if it can."""
    sut = settings.sut
    if sut.log_driver != "json-file" and sut.deployment != "container":
        why = f"the output of `{sut.deployment}` goes to a file, not to an engine's log driver"
        return Refusal((("sut", "log_driver"), ("sut", "deployment")), why, "leave it out, or use `container`")
    if sut.log_driver == "local" and (sut.engine or "docker") != "docker":
        why = "Podman has no log driver `local`"
        return Refusal((("sut", "log_driver"), ("sut", "engine")), why, "use json-file, journald or none")
    if sut.log_target == "file" and sut.database not in servers:
        why = f"tare cannot have {sut.database or 'a program without a database'} write its log to a file"
        hint = f"use {', '.join(sorted(servers))}, or leave `log_target` out"
        return Refusal((("sut", "log_target"), ("sut", "database")), why, hint)
    return None
