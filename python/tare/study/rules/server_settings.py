"""Values that no setting of any server accepts; what one setting accepts is checked by its database."""

from __future__ import annotations

from tare.errors import StudyError
from tare.study.model import Scalar

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
