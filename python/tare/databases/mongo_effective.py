"""What a server of MongoDB's protocol says of itself: who it is, and its settings as names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tare.errors import RunFailed

MONGODB, FERRETDB, PERCONA = "MongoDB", "FerretDB", "Percona Server for MongoDB"

_PER_CALL = frozenset({"$clusterTime", "lastCommittedOpTime", "ok", "operationTime"})
"""Of the protocol, not of the server's settings."""


def who_answers(build: Mapping[str, Any]) -> Mapping[str, str]:
    """`server.name` and `server.version` by the answer to `buildInfo`, by which other servers say who they are.

    `server.protocol`: the version of MongoDB that it says to be like. One that does not say otherwise is MongoDB.
    """
    protocol = build.get("version")
    own = build.get("ferretdb")
    if isinstance(own, Mapping) and isinstance(own.get("version"), str):
        name, version = FERRETDB, own["version"]
    elif isinstance(build.get("psmdbVersion"), str):
        name, version = PERCONA, build["psmdbVersion"]
    else:
        name, version = MONGODB, protocol
    if not isinstance(protocol, str):
        raise RunFailed(f"the server does not tell its version: {str(dict(build))[:80]}")
    return {"server.name": name, "server.version": version, "server.protocol": protocol}


def flat(beginning: str, told: Any) -> Mapping[str, str]:
    """Dotted name → value as text, of documents within documents; lists are one value."""
    return dict(_leaves(beginning, told))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield name, value if isinstance(value, str) else repr(value)
        return
    for key, inner in value.items():
        if key not in _PER_CALL:
            yield from _leaves(f"{name}.{key}" if name else key, inner)
