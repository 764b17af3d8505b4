"""A view as the parts of the page: HTML for words, JSON for what the browser draws.

Each part has a tag, a digest of its content: two servers that see the same store give the same tags. A viewer who
returns, after a lost connection or the start of another server, gets only what has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tare.live.answers import answers_so_far, trust_so_far
from tare.live.drawings import grid, series, trace, trail
from tare.live.fleet import pace_of, site_rows
from tare.live.known import Known
from tare.live.view import View
from tare.plural import counted
from tare.protocols.registry import rule_of
from tare.protocols.stopping import Decision, Progress, Rule
from tare.record.run_record import Phase
from tare.report import figures
from tare.report.figures import duration, moment, percent
from tare.report.plain import plain
from tare.report.words.answer_lines import phrase
from tare.run.ending import ending_of
from tare.run.events import Standing

LOG_LINES = 60
_ABSENT: Mapping[str, Any] = {}


_TAG_DIGITS = 8
DRAWN: Mapping[str, Callable[[View], Any]] = {"grid": grid, "trail": trail, "series": series, "trace": trace}
"""Part → function that makes the data for the browser to draw."""


def status(view: View) -> Mapping[str, Any]:
    """State of the study in a sentence and a few figures."""
    known = view.known
    if known is None:
        return {"sentence": "", "facts": (), "standing": "lost"}
    failed = sum(not outline.made.ok for made in known.attempts.values() for outline in made)
    certain = view.fixed or known.decision.end is not None
    about = "" if certain else "at most " if view.blocks is None else "about "
    spent = sum(known.done.seconds.values())
    facts = [
        ("Runs", f"{len(known.done.good)} good of {about}{view.expected}"),
        ("Failed attempts", str(failed)),
        ("Blocks", f"{known.decision.blocks} finished, {view.cap} planned{'' if view.fixed else ' at most'}"),
        ("Machine time", duration(spent) if spent else _no_time(known)),
    ]
    pace = pace_of(view)
    if pace is not None:
        facts.append(("Pace", f"{pace.blocks_an_hour:,.1f} blocks an hour on {_sites_at_work(view)}"))
        if pace.enough_at is not None:
            facts.append(("Enough at about", moment(pace.enough_at)))
    elif view.running and view.left_s is not None:
        sites = () if view.now is None else view.now.sites
        at_work = sum(each.standing is Standing.AT_WORK for each in sites)
        where = f" on {counted(at_work, 'site')}" if at_work else ""
        facts.append(("Expected yet", f"about {duration(view.left_s / max(1, at_work))}{where}"))
    if view.makers:
        facts.append(("At work", ", ".join(plain(maker, 100) for maker in view.makers)))
    return {"sentence": _sentence(view, known), "facts": facts, "standing": _standing(view, known)}


def _sites_at_work(view: View) -> str:
    sites = () if view.now is None else view.now.sites
    return f"{sum(each.standing is Standing.AT_WORK for each in sites)} of {counted(len(sites), 'site')}"


def _no_time(known: Known) -> str:
    return "none yet" if known.plan.study.imported is None else "not known"


def _standing(view: View, known: Known) -> str:
    if view.running:
        return "running"
    return "idle" if known.decision.end is None else "ended"


def _sentence(view: View, known: Known) -> str:
    ending = ending_of(known.plan, known.done)
    if view.running:
        return "A study is being run." if ending is None else f"Being run again: {ending.why}."
    if ending is not None:
        return f"Ended: {ending.why}."
    if not known.attempts:
        return "No run yet, and no `tare run` is using this store."
    return "Not finished, and no `tare run` is working on it. The same command resumes it."


def now(view: View) -> Mapping[str, Any]:
    """Current runs with their phases; with several sites, one row per site."""
    order = list(Phase)
    return {
        "preparing": view.now.preparing if view.running and view.now is not None else None,
        "phases": order,
        "names": view.names,
        "sites": site_rows(view),
        "hosts": lambda run: ", ".join(f"{part} on {host}" for part, host in run.hosts.items()),
        "place": lambda phase: -1 if phase is None else order.index(phase),
    }


def standing(view: View) -> Mapping[str, Any]:
    """Each arm against its baseline so far, with the distance of its interval from the target."""
    if view.known is None:
        return {"rows": (), "open": True, "target": None, "baseline": "", "blocks": "", "trust": None}
    study, decided = view.known.plan.study, view.known.decision
    rule = rule_of(study)
    block_s = view.block_s
    phrases = {arm: phrase(each, block_s) for arm, each in answers_so_far(study, decided).items()}
    return {
        "trust": trust_so_far(study, decided, block_s),
        "rows": [
            {**_row(arm.name, view.names[arm.name], decided), "phrase": phrases.get(arm.name, "the control")}
            for arm in study.arms
            if arm.name in decided.arms
        ],
        "open": decided.end is None,
        "target": _target(rule),
        "baseline": view.names[study.baseline] if not study.baseline_levels else "each arm's baseline",
        "blocks": counted(decided.blocks, "finished block"),
    }


def _target(rule: Rule) -> str | None:
    """Target half-width of the interval.

    A margin has none: there, each of its ends must be outside the interval.
    """
    return None if rule.target is None or rule.margin is not None else f"\N{PLUS-MINUS SIGN}{100 * rule.target:g} %"


def _row(name: str, shown: str, decided: Decision) -> Mapping[str, Any]:
    arm = decided.arms[name]
    more = "" if arm.more_blocks is None else "none" if not arm.more_blocks else f"about {arm.more_blocks}"
    half = "" if arm.half_width is None else f"\N{PLUS-MINUS SIGN}{percent(arm.half_width, signed=False)}"
    return {
        "arm": shown,
        "point": percent(arm.point),
        "interval": _interval(arm),
        "half": half,
        "n": arm.n,
        "more": more,
    }


def _interval(arm: Progress) -> str:
    if arm.low is None or arm.high is None:
        return "too few blocks" if arm.n else "no block yet"
    return f"[{100 * arm.low:+,.1f}, {100 * arm.high:+,.1f}] %"


def log(view: View) -> Mapping[str, Any]:
    """Newest lines of the session, the newest last."""
    lines = () if view.now is None else view.now.log[-LOG_LINES:]
    return {"lines": lines, "stale": bool(lines) and not view.running}


def nothing(view: View) -> Mapping[str, Any]:  # noqa: ARG001 - one shape for all parts
    """No further data: the template uses the view only."""
    return _ABSENT


WORDING: Mapping[str, Callable[[View], Mapping[str, Any]]] = {
    "status": status,
    "now": now,
    "standing": standing,
    "log": log,
    "reports": nothing,
}
"""Part → function that makes the data of its template."""


@dataclass(frozen=True)
class Part:
    """`content`: HTML as text, or data to draw as a JSON tree."""

    name: str
    content: Any
    tag: str


def environment() -> Environment:
    """Templates that escape everything that is inserted."""
    made = Environment(
        loader=PackageLoader("tare.live"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        plain=plain,
        percent=figures.percent,
        amount=figures.amount,
        duration=figures.duration,
        moment=figures.moment,
        second=figures.second,
        size=figures.size,
        figures=figures.unbroken,
    )
    return made


WORDED = tuple(WORDING)
NAMES = (*WORDED, *DRAWN)
"""All parts, in the order of their tags in an event's ID."""


def parts(view: View, templates: Environment) -> Mapping[str, Part]:
    """All parts of a view."""
    worded = {name: _html(name, view, templates) for name in WORDED}
    drawn = {name: make(view) for name, make in DRAWN.items()}
    return {name: Part(name, content, _tag(content)) for name, content in {**worded, **drawn}.items()}


def _html(name: str, view: View, templates: Environment) -> str:
    return templates.get_template(f"{name}.html.j2").render(view=view, **WORDING[name](view))


def _tag(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_TAG_DIGITS]
