"""Which packages a root file system was made from, by its own package database."""

from __future__ import annotations

from pathlib import Path

from tare.images.oci.rooted import read_inside

BUILT_HERE = "usr/share/tare/programs"
"""Programs that a recipe built: package, tab, version with sum and toolchain, a line each."""


def installed_packages(root: Path) -> tuple[tuple[str, str], ...]:
    """(name, version) of every installed Debian package (dpkg-query(1)'s status file), and of what a recipe built.

    Sorted; empty where there is neither.
    """
    packages = [parse_stanza(stanza) for stanza in _text(root, "var/lib/dpkg/status").split("\n\n")]
    for line in _text(root, BUILT_HERE).splitlines():
        name, _, version = line.partition("\t")
        packages.append((name, version))
    return tuple(sorted(each for each in packages if each is not None))


def _text(root: Path, path: str) -> str:
    return (read_inside(root, path) or b"").decode(errors="replace")


def parse_stanza(stanza: str) -> tuple[str, str] | None:
    """Name and version of one stanza, `None` where it is of a package that is not installed."""
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
    if "Package" not in fields or "Version" not in fields or not fields.get("Status", "").endswith(" installed"):
        return None
    return fields["Package"], fields["Version"]
