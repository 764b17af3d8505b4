"""Current activity of a running study, in one small file beside its store.

Replaced as a whole, so never half read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from tare.plain_files import open_plain
from tare.record.observation import Side
from tare.record.run_record import Phase
from tare.run.events import Standing
from tare.study.values import Strict

FORMAT = 1
LARGEST_BYTES = 1 << 20
"""A larger file was not written by tare."""


class Line(Strict):
    """A line of the session's log. `at`: seconds since the epoch."""

    at: float
    text: str


class Current(Strict):
    """A current run; a duet has two. `token` names its directory below `Now.work`.

    `phase`, `phase_began_at`: `None` until the first phase begins. `expected_s`: expected duration of the phase, if
    known.
    """

    run_id: str
    arm: str
    block: int
    attempt: int
    token: str
    began_at: float
    workload: str
    phase: Phase | None = None
    phase_began_at: float | None = None
    expected_s: float | None = None
    emulated: tuple[Side, ...] = ()
    """Sides that are known to be emulated."""
    site: str | None = None
    """Site of the run, if there are several."""
    hosts: Mapping[str, str] = Field(default_factory=dict)
    """Node or `client` → its host; empty if one host has all of them."""


class AtSite(Strict):
    """State of one of several sites. `since`: seconds since the epoch; `why`: reason of a failure."""

    site: str
    standing: Standing
    since: float
    why: str = ""
    preparing: str | None = None


class Now(Strict):
    """One session of `tare run`. `over`: how it ended, `None` while it lasts. `log`: its newest lines."""

    format: int = FORMAT
    pid: int
    began_at: float
    work: str
    preparing: str | None = None
    runs: tuple[Current, ...] = ()
    sites: tuple[AtSite, ...] = ()
    """Sites of a study on several sites, by name."""
    log: tuple[Line, ...] = ()
    over: str | None = None


def read_now(path: Path) -> Now | None:
    """Read the file; `None` if it does not exist or this tare does not understand it."""
    try:
        with open_plain(path.parent, path.name) as file:
            content = file.read(LARGEST_BYTES + 1)
        now = Now.model_validate_json(content) if len(content) <= LARGEST_BYTES else None
    except (OSError, ValidationError):
        return None
    if now is None:
        return None
    return now if now.format == FORMAT else None
