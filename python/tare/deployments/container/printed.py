"""What a container printed, from the engine's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from docker.errors import create_api_error_from_http_exception
from requests.exceptions import ConnectionError as BrokenConnection
from requests.exceptions import HTTPError

from tare.sites.reading import last_line_of

if TYPE_CHECKING:
    from docker import APIClient
    from docker.models.containers import Container

NO_LOG = "none"
"""The log driver that keeps nothing."""
_LAST_WORDS_LINES = 5
MOST_BYTES = 256 << 20
"""Most of an output's beginning that is kept: more than any generator prints."""
LAST_BYTES = 1 << 20
"""Most of the end of a longer one: a program that fails says why last."""
_MOST_READ = 16
"""A log of more than so many times `MOST_BYTES` is not read to its end."""
_PIECE = 64 << 10
_HEAD = 8
"""Bytes before each frame of a log: its stream first, its length last (Docker's API, `ContainerAttach`)."""
_SYSTEM_ERROR = 3
"""Stream of a frame with an error of the engine (pkg/stdcopy of Moby)."""


def printed(container: Container, *, stdout: bool) -> bytes:
    """One of the two outputs, read in pieces: a container may have printed more than this machine has memory.

    Each wait for a piece has the client's time limit. Raises `DockerException` or `RequestException`.
    """
    api = cast("APIClient", container.client.api)  # type: ignore[union-attr]  # of one that an engine returned
    address = f"{api.base_url}/v{api.api_version}/containers/{container.id}/logs"
    wanted: dict[str, str | int] = {
        "stdout": int(stdout),
        "stderr": int(not stdout),
        "follow": 0,
        "timestamps": 0,
        "tail": "all",
    }
    with api.get(address, params=wanted, stream=True, timeout=api.timeout) as answer:
        try:
            answer.raise_for_status()
        except HTTPError as error:
            create_api_error_from_http_exception(error)  # raises
        return kept_of(_contents(answer.iter_content(_PIECE)))


def kept_of(pieces: Iterator[bytes]) -> bytes:
    """Join pieces; of a long output, the beginning and the end."""
    kept, last, read = bytearray(), bytearray(), 0
    for piece in pieces:
        room = MOST_BYTES - len(kept)
        kept += piece[:room]
        last += piece[room:]
        del last[: -2 * LAST_BYTES]
        read += len(piece)
        if read > _MOST_READ * MOST_BYTES:
            return bytes(kept) + f"\n[tare: the output was cut here, its end lies beyond {read} bytes]\n".encode()
    if read <= MOST_BYTES:
        return bytes(kept)
    cut = f"\n[tare: the output was cut here, {read} bytes in all]\n"
    return bytes(kept) + cut.encode() + bytes(last[-LAST_BYTES:])


def log_driver(container: Container) -> str | None:
    """The engine's word for what it does with the container's output."""
    return ((container.attrs.get("HostConfig") or {}).get("LogConfig") or {}).get("Type")


def last_words(container: Container | None) -> str:
    """Return the last line that a container printed, or why there is none."""
    if container is None:
        return "its container is gone"
    if log_driver(container) == NO_LOG:
        return "its log driver keeps no output"
    return last_line_of(bytes(container.logs(tail=_LAST_WORDS_LINES))) or "it printed nothing"


def _contents(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what the frames of a log contain. Raises `ConnectionError` of requests for a log that ends in one."""
    head, left = b"", 0
    for piece in pieces:
        at = 0
        while at < len(piece):
            if left:
                part = piece[at : at + left]
                at, left = at + len(part), left - len(part)
                yield part
                continue
            more = piece[at : at + _HEAD - len(head)]
            head, at = head + more, at + len(more)
            if len(head) == _HEAD and head[0] == _SYSTEM_ERROR:
                raise BrokenConnection("the engine cannot read the log to its end")
            if len(head) == _HEAD:
                left, head = int.from_bytes(head[4:], "big"), b""
    if head or left:
        raise BrokenConnection("the engine's log ends in the middle of a frame")
