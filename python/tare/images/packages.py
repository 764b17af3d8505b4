"""The packages that a root file system was made from, from its own package database."""

from __future__ import annotations

from pathlib import Path

from tare.images.oci.rooted import read_inside

BUILT_HERE = "usr/share/tare/programs"
"""Programs that a recipe built: package, tab, version with sum and toolchain, one line each."""


def installed_packages(root: Path) -> tuple[tuple[str, str], ...]:
    """(name, version) of every installed Debian package and of programs that a recipe built.

    From dpkg-query(1)'s status file. Sorted; empty if there are neither.
    """
    packages = [parse_stanza(stanza) for stanza in _text(root, "var/lib/dpkg/status").split("\n\n")]
    for line in _text(root, BUILT_HERE).splitlines():
        name, _, version = line.partition("\t")
        packages.append((name, version))
    return tuple(sorted(each for each in packages if each is not None))


def _text(root: Path, path: str) -> str:
    return (read_inside(root, path) or b"").decode(errors="replace")


def parse_stanza(stanza: str) -> tuple[str, str] | None:
    """Name and version of one stanza; `None` if the package is not installed."""
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
    if "Package" not in fields or "Version" not in fields or not fields.get("Status", "").endswith(" installed"):
        return None
    return fields["Package"], fields["Version"]
