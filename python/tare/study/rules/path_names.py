"""A level or an arm that bears the name of a network has to be on it: results are read by their names.

`docker run -p` on 127.0.0.1, through docker-proxy, has been published as "bridge" more than once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.study.model import ArmSettings
from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import NamedLevels, sets
from tare.study.reading.file import StudyFile
from tare.study.values import NetworkKind

_WORDS = frozenset(NetworkKind)


@dataclass(frozen=True)
class _Wrong:
    what: str
    hint: str


def check(document: Document, file: StudyFile, arm: NamedLevels, settings: ArmSettings) -> None:
    """Raise `StudyError` where the arm, or one of its levels, is called by a network that it is not on."""
    for factor, level in arm.levels.items():
        spec = file.factors[factor]
        key: KeyPath = (level,) if isinstance(spec.levels, Mapping) else ()
        where = ("factors", factor, "levels", *key)
        if wrong := _other_network(level, _side(level, sets(spec)), settings):
            raise document.error(where, f"the level {level!r} {wrong.what}", hint=wrong.hint)
    if arm.path and (wrong := _other_network(arm.name, _side(arm.name, ()), settings)):
        raise document.error((*arm.path, "name"), f"the arm {arm.name!r} {wrong.what}", hint=wrong.hint)


def _side(word: str, keys: tuple[str, ...]) -> str:
    """Whose network a name tells: the client's where it shares, or where its factor varies no other."""
    client_only = "client.network" in keys and "sut.network" not in keys
    return "client" if word == NetworkKind.SHARED or client_only else "sut"


def _other_network(word: str, side: str, settings: ArmSettings) -> _Wrong | None:
    placed = settings.client if side == "client" else settings.sut
    if word not in _WORDS or (placed is not None and placed.network == word):
        return None
    if placed is None:
        return _Wrong("is of a client, and there is none", "give it another name")
    hint = f"set {side}.network: {word}, or give it another name"
    return _Wrong(f"has {side}.network: {placed.network.value}", hint)
