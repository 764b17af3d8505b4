"""Which packages a root file system was made from, as its own package database tells."""

from __future__ import annotations

from pathlib import Path


def installed_packages(root: Path) -> tuple[tuple[str, str], ...]:
    """(name, version) of every installed Debian package (dpkg-query(1)'s status file), sorted; empty elsewhere."""
    status = root / "var/lib/dpkg/status"
    if status.is_symlink() or not status.is_file():
        return ()
    found = [parse_stanza(stanza) for stanza in status.read_text(errors="replace").split("\n\n")]
    return tuple(sorted(each for each in found if each is not None))


def parse_stanza(stanza: str) -> tuple[str, str] | None:
    """Name and version of one stanza, `None` where it is of a package that is not installed."""
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
    if "Package" not in fields or "Version" not in fields or not fields.get("Status", "").endswith(" installed"):
        return None
    return fields["Package"], fields["Version"]
