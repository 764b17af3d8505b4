"""tare's tags on resources for which OpenStack has no tags.

Servers and volumes have metadata. Ports, addresses and security groups have a description of at most 255
characters, which holds the tags from the creation on. Server groups only have a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from tare.sites.cloud import Tags

NAME = "tare-name"
_LONGEST = 255
_GROUP = re.compile(r"tare-((?P<plan>[a-z][a-z0-9-]*)-[0-9a-f]{6})-s\d+-placement")
_NEVER = datetime.max.replace(tzinfo=UTC)


def described(name: str, tags: Tags) -> str:
    """Tags as a description; the last ones, study and maker, may be cut off."""
    texts = {NAME: name, **tags.texts()}
    last = ("tare-study", "tare-made-by")
    ordered = [key for key in texts if key not in last]
    return " ".join(f"{key}={texts[key]}" for key in (*ordered, *last))[:_LONGEST]


def read_description(text: str | None) -> Mapping[str, str]:
    """Parse a description; a text that is not tare's yields no valid tags."""
    pairs = (word.partition("=") for word in (text or "").split())
    return {"tare-study": "", "tare-made-by": "", **{key: value for key, equals, value in pairs if equals}}


def of_group(name: str) -> Tags | None:
    """Tags in the name of a server group; `None` for a name that is not tare's.

    It has no end of life of its own.
    """
    if (match := _GROUP.fullmatch(name)) is None:
        return None
    return Tags(match[1], match["plan"], "", _NEVER, "")
