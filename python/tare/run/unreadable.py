"""Reading arbitrary output of tools: an error in a reader fails the run, never tare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tare.errors import RunFailed, TareError, is_panic, is_thread_refused

_LONGEST = 200


@contextmanager
def read_or_failed(what: str) -> Iterator[None]:
    """Convert any error of a reader into a `RunFailed` that names `what` was read; `TareError` passes."""
    try:
        yield
    except TareError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and (not is_panic(error) or is_thread_refused(error)):
            raise
        lines = str(error).splitlines() or [""]
        raise RunFailed(
            f"{what} cannot be read ({type(error).__name__}: {lines[0][:_LONGEST]})",
            hint="its raw files are kept with the failed run",
        ) from error
