"""What a program printed, as a text of limited size."""

from __future__ import annotations

from pathlib import Path

from tare.errors import RunFailed


def output_text(path: Path, tool: str, most_mib: int) -> str:
    """Read a file of output. Raises `RunFailed` if it is too large for a report of `tool`."""
    with path.open("rb") as file:
        content = file.read((most_mib << 20) + 1)
    if len(content) > most_mib << 20:
        raise RunFailed(f"{path.name} of {tool} is larger than {most_mib} MiB")
    return content.decode(errors="replace")
