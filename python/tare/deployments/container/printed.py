"""What a container printed, from the engine's log."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from docker.models.containers import Container

MOST_BYTES = 256 << 20
"""Most of an output that is kept: more than any generator prints."""
_CUT = b"\n[tare: the output was cut here]\n"


def printed(container: Container, *, stdout: bool) -> bytes:
    """One of the two outputs, read in pieces: a container may have printed more than this machine has memory."""
    kept = bytearray()
    pieces = cast("Any", container.logs(stdout=stdout, stderr=not stdout, stream=True, follow=False))
    for piece in pieces:
        kept += piece[: MOST_BYTES + 1 - len(kept)]
        if len(kept) > MOST_BYTES:
            with suppress(Exception):  # the rest is of no use, however the connection ends
                pieces.close()
            return bytes(kept[:MOST_BYTES]) + _CUT
    return bytes(kept)
