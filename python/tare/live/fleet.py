"""What several sites are doing, and how fast they make blocks together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.live.known import Known
from tare.live.now import AtSite, Current
from tare.live.view import View
from tare.run.events import Standing

_HOUR_S = 3600.0


@dataclass(frozen=True)
class SiteRow:
    """`run`: the current run. `since`: start of the run's phase, or of the site's state.

    `blocks`: with a good run made there.
    """

    site: str
    standing: Standing | None
    doing: str
    since: float | None
    run: Current | None
    blocks: int
    good: int
    failed: int


@dataclass(frozen=True)
class Pace:
    """Blocks per hour of this session, up to its last run.

    `enough_at`: expected end at this pace, since the epoch.
    """

    blocks_an_hour: float
    enough_at: float | None


def site_rows(view: View) -> Sequence[SiteRow]:
    """Every site with runs or at work now, by name; empty if everything was made on one machine.

    Empty also while a session is on one site: its run is shown by itself.
    """
    if view.known is None or (view.running and view.now is not None and not view.now.sites):
        return ()
    made = _made(view.known)
    standing = {each.site: each for each in view.now.sites} if view.running and view.now is not None else {}
    runs = {run.site: run for run in view.under_way if run.site is not None}
    names = sorted({*made, *standing})
    return [_row(name, standing.get(name), runs.get(name), made.get(name, _Made())) for name in names]


@dataclass(frozen=True)
class _Made:
    blocks: int = 0
    good: int = 0
    failed: int = 0


def _made(known: Known) -> Mapping[str, _Made]:
    outlines = [outline for made in known.attempts.values() for outline in made if outline.site is not None]
    good = Counter(outline.site for outline in outlines if outline.made.ok)
    failed = Counter(outline.site for outline in outlines if not outline.made.ok)
    blocks = Counter(site for site, _ in {(each.site, each.made.block) for each in outlines if each.made.ok})
    return {site: _Made(blocks[site], good[site], failed[site]) for site in (*good, *failed) if site is not None}


def _row(name: str, at: AtSite | None, run: Current | None, made: _Made) -> SiteRow:
    doing, since = "", None if at is None else at.since
    if run is not None:
        doing, since = run.phase or "to start", run.phase_began_at or run.began_at
    elif at is not None:
        doing = f"preparing {at.preparing}" if at.preparing else str(at.standing)
    return SiteRow(
        name, None if at is None else at.standing, doing, since, run, made.blocks, made.good, made.failed
    )


def pace_of(view: View) -> Pace | None:
    """Pace of a session on several sites; `None` for others, and before the first block is finished."""
    if view.known is None or view.now is None or not view.running or not view.now.sites:
        return None
    began = view.now.began_at
    ended = _ended_at(view.known)
    here = [ended[block.block] for block in view.known.blocks if ended[block.block] > began]
    if not here:
        return None
    last = max(here)
    pace = len(here) / ((last - began) / _HOUR_S)
    expected = view.blocks
    if expected is None or view.known.decision.end is not None:
        return Pace(pace, None)
    left = max(0, expected - view.known.decision.blocks)
    return Pace(pace, last + left / pace * _HOUR_S)


def _ended_at(known: Known) -> Mapping[int, float]:
    """Block → time when its last attempt was committed."""
    ended: dict[int, float] = {}
    for outline in (one for made in known.attempts.values() for one in made):
        block = outline.made.block
        ended[block] = max(ended.get(block, 0.0), outline.committed_at)
    return ended
