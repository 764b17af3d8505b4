"""User and group IDs of a task's user, from the image's /etc/passwd and /etc/group, with an engine's rules.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from tare.errors import RunFailed

_PASSWD_FIELDS, _GROUP_FIELDS = 6, 4


@dataclass(frozen=True)
class Account:
    """The user that a program runs as. `groups`: the primary group and all others."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def account(wanted: str, passwd: str, group: str) -> Account:
    """Resolve `name`, `uid`, `name:group` or `uid:gid`; empty is root.

    Raises `RunFailed` if the image has no such name.
    """
    name, _, of_group = wanted.partition(":")
    name = name or "0"
    row = next((each for each in _table(passwd, _PASSWD_FIELDS) if name in (each[0], each[2])), None)
    if row is None and not name.isdigit():
        raise RunFailed(f"the image has no user {name!r}")
    groups = _table(group, _GROUP_FIELDS)
    uid, gid, home = (int(row[2]), int(row[3]), row[5] or "/") if row else (int(name), 0, "/")
    others = [int(each[2]) for each in groups if row and row[0] in each[3].split(",")]
    if of_group:
        known = [int(each[2]) for each in groups if of_group in (each[0], each[2])]
        if not known and not of_group.isdigit():
            raise RunFailed(f"the image has no group {of_group!r}")
        gid, others = (known[0] if known else int(of_group)), []
    return Account(uid, gid, (gid, *others), home)


def _table(text: str, fields: int) -> list[list[str]]:
    return [row for row in (line.split(":") for line in text.splitlines()) if len(row) >= fields]
