"""Settings of a study for Redis: what may be set, how it is written, and what differs from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tare.databases.option_file import Setting
from tare.errors import StudyError

SECRET = frozenset({"masterauth", "requirepass", "tls-client-key-file-pass", "tls-key-file-pass"})
"""What CONFIG GET would tell of passwords."""

PER_RUN: frozenset[str] = frozenset({"bind", "port"})
"""May differ between two runs, or two arms, that are equal in all that matters. All others must agree."""

FOLLOWS: Mapping[str, frozenset[str]] = {"sut.limits.nofile": frozenset({"maxclients"})}
"""What the server lowers by the limit of open files that it finds."""

_OWN = SECRET | {
    "aclfile", "bind", "cluster-enabled", "daemonize", "dir", "include", "logfile", "masteruser", "pidfile", "port",
    "protected-mode", "rename-command", "replicaof", "slaveof", "supervised", "syslog-enabled", "tls-port",
    "unixsocket", "unixsocketperm", "user",
}  # fmt: skip
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VALUE = re.compile(r"[ !$-&(-\[\]-~]*")
"""Printable ASCII without quotes, backslash and `#`."""


def check_settings(settings: Mapping[str, Setting]) -> None:
    """Raise `StudyError` for the first setting that no study may make; the server says whether it knows it."""
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise StudyError(
                f"{name!r} is no name of a setting of Redis", hint="small letters, digits and `-` only"
            )
        if name in _OWN:
            raise StudyError(f"the server setting {name!r} is tare's own", hint="remove it from `settings`")
        _rendered(name, value)


def render(settings: Mapping[str, Setting]) -> str:
    """A line a setting, as redis.conf has them; several words are as many arguments (`save: 900 1 300 10`)."""
    return "".join(f"{name} {_rendered(name, value)}\n" for name, value in settings.items())


def _rendered(name: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if not _VALUE.fullmatch(text):
        raise StudyError(
            f"the value of the server setting {name!r} cannot stand in redis.conf: {text!r}",
            hint="printable ASCII without quotes, backslashes and `#`",
        )
    return text if text.strip() else '""'
