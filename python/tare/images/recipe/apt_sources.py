"""Sources of a Debian release: the mirror that this machine's own apt uses, so none is ever named here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tare.errors import RunFailed
from tare.sites import Host

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""From the package debian-archive-keyring, which Ubuntu has too."""

_SUFFIXES = ("", "-updates", "-security")
_ROLLING = ("sid", "unstable", "testing", "experimental")
"""Releases without updates of their own."""
_FIELDS = ("REPO_URI", "RELEASE", "COMPONENT", "ORIGIN", "CODENAME")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Index:
    """An index of packages that apt is configured for.

    `codename` and `origin` are empty before its first update.
    """

    uri: str
    release: str
    component: str
    origin: str
    codename: str

    @property
    def suffix(self) -> str | None:
        """Part of a release, such as `-security`; `None` for parts that recipes do not use (`-backports`)."""
        name = self.codename or self.release
        base, dash, part = name.partition("-")
        suffix = f"{dash}{part}".replace("/", "-")
        return suffix if base and suffix in _SUFFIXES else None


def sources_of(host: Host, suite: str) -> tuple[str, ...]:
    """Lines of sources.list(5) for the release, from the mirrors of the host's own Debian sources.

    A host with another Debian release finds the wanted one on the same mirrors. Empty if the host has no Debian
    sources (Ubuntu): mmdebstrap then uses its default.
    """
    asked = "|".join(f"$({field})" for field in _FIELDS)
    try:
        argv = ["apt-get", "indextargets", "--format", asked, "Created-By: Packages"]
        listing = host.run(argv, timeout_s=_TIMEOUT_S).text
    except RunFailed:
        return ()  # no apt here; mmdebstrap's message will be clearer
    signed = host.run(["test", "-r", KEYRING], timeout_s=_TIMEOUT_S, check=False).code == 0
    return choose(parse_indexes(listing), suite, KEYRING if signed else None)


def parse_indexes(listing: str) -> tuple[Index, ...]:
    """Parse the output of `apt-get indextargets`; a field that apt does not know is printed as it was asked for."""
    rows = [line.split("|") for line in listing.splitlines() if line.count("|") == len(_FIELDS) - 1]
    return tuple(Index(*("" if value.startswith("$(") else value for value in row)) for row in rows)


def choose(indexes: Sequence[Index], suite: str, keyring: str | None) -> tuple[str, ...]:
    """A line for each part of the release: from where apt has this release, else from another release's mirror."""
    debian = [each for each in indexes if each.origin == "Debian" and each.component == "main"]
    lines = []
    for suffix in _SUFFIXES[:1] if suite in _ROLLING else _SUFFIXES:
        wanted = f"{suite}{suffix}"
        parts = [each for each in debian if each.suffix == suffix]
        if uri := _first_uri([each for each in parts if wanted in (each.codename, each.release)] or parts):
            option = f"[signed-by={keyring}] " if keyring else ""
            lines.append(f"deb {option}{uri} {wanted} main")
    return tuple(lines) if lines and lines[0].endswith(f" {suite} main") else ()


def _first_uri(indexes: Iterable[Index]) -> str | None:
    return next((each.uri for each in indexes if each.uri), None)
