"""Workloads that need no database: the program is itself the SUT, so that what is for two sides cannot be said."""

from __future__ import annotations

from collections.abc import Mapping

from tare.study.reading.document import Document, KeyPath
from tare.study.values import NetworkKind


def check(document: Document, workload: str) -> None:
    """Raise `StudyError` for keys that would say nothing where there is neither a database nor a client."""
    tree = document.tree
    raw = tree.get("sut")
    sut: Mapping[str, object] = raw if isinstance(raw, Mapping) else {}
    if tree.get("client") is not None:
        hint = "leave `client` out, and place the program by `sut`"
        raise document.error(("client",), f"{workload} is itself the SUT and has no client", hint=hint)
    for key in ("database", "settings"):
        if sut.get(key) is not None:
            where: KeyPath = ("sut", key)
            raise document.error(where, f"{workload} needs no database", hint=f"leave `sut.{key}` out")
    if sut.get("network", NetworkKind.HOST) != NetworkKind.HOST:
        what = f"nobody speaks with {workload} over a network, so its network would say nothing"
        raise document.error(("sut", "network"), what, hint="leave `sut.network` out")
