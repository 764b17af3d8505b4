"""A verdict for people and as JSON. Environments, command lines and passwords are in neither."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tare.inspection.verdict import Met, Verdict, shown
from tare.knowledge.advice_text import effect_words
from tare.knowledge.unit_costs import UnitCost
from tare.one_line import plain
from tare.plural import counted

_LABEL = 12
_LONGEST = 600
_ELSEWHERE: Mapping[str, frozenset[str]] = {
    "container": frozenset({"kubernetes"}),
    "pod": frozenset({"docker", "podman", "compose"}),
    "process": frozenset({"docker", "podman", "compose", "kubernetes"}),
}
"""Where a server is → places of lines that are not for it."""
_FACT = re.compile(r"<([a-z_.]+)>")
_LONG_NAME = re.compile(r"[0-9a-f]{24,}")


def lines(verdict: Verdict, width: int = 80) -> Iterator[str]:
    """The verdict as lines of at most `width` columns, except commands to paste."""
    subject = verdict.subject
    place = {"process": "without a container", "pod": "in a pod"}.get(subject.placed, f"in {subject.engine}")
    if place == "in unknown":
        place = "in a container"
    head = f"{plain(subject.name, 60)}: {plain(subject.database, 40)} {place}, process {subject.pid}"
    yield from _wrapped(head, width)
    yield ""
    for number, met in enumerate(verdict.met, 1):
        yield from _met(number, met, verdict, width)
        yield ""
    yield from _summary(verdict, width)


def pasted(met: Met, verdict: Verdict) -> Mapping[str, str]:
    """Lines to paste where the server is, with its own name and values in place of `CONTAINER` and `<fact>`."""
    lines: dict[str, str] = {}
    elsewhere = _ELSEWHERE.get(verdict.subject.placed, frozenset())
    for place, line in met.known.trap.remedy.lines.items():
        if place in elsewhere:
            continue
        named = line.replace("CONTAINER", plain(verdict.subject.name, 60))
        lines[place] = _FACT.sub(lambda each: shown(each[1], verdict.readings.facts.get(each[1])), named)
    return lines


def _met(number: int, met: Met, verdict: Verdict, width: int) -> Iterator[str]:
    trap = met.known.trap
    yield from _wrapped(f"{number}. {trap.title}  [{met.known.id}]", width, indent="   ", first="")
    yield from _wrapped(trap.says, width, indent="   ")
    for name, reading in met.evidence.items():
        yield from _labelled("evidence", f"{name} {shown(name, reading.value)} ({_short(reading.where)})", width)
    yield from _labelled("cost", trap.cost.says, width)
    for claim in met.claims:
        yield from _labelled("measured", f"{effect_words(claim.claim)} ({claim.id})", width)
    if met.here is not None:
        yield from _labelled("here", f"{_weighed(met.here)} (tare weigh)", width)
    yield from _labelled("remedy", trap.remedy.says, width)
    for place, line in pasted(met, verdict).items():
        yield f"   {place:{_LABEL}}{plain(line, _LONGEST)}"
    if trap.study:
        yield f"   {'measure':{_LABEL}}--trap {met.known.id} --study FILE writes the study"


def _weighed(cost: UnitCost) -> str:
    interval = "" if cost.low is None or cost.high is None else f" [{cost.low:.1f}, {cost.high:.1f}]"
    return f"{cost.us:+.1f} µs{interval} of CPU time a request and its reply"


def _summary(verdict: Verdict, width: int) -> Iterator[str]:
    looked = len(verdict.met) + len(verdict.fine)
    if not verdict.met:
        yield "Nothing found."
    yield from _wrapped(
        f"{counted(looked, 'trap')} looked for, {len(verdict.met)} met, {len(verdict.fine)} fine.", width
    )
    reasons: dict[str, list[str]] = {}
    for each in verdict.undecided:
        for name, why in each.lacks.items():
            reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        listed = ", ".join(dict.fromkeys(names))
        yield from _wrapped(f"Not read: {listed} ({plain(why, 200)}).", width)
    if verdict.undecided:
        ids = ", ".join(each.known.id for each in verdict.undecided)
        yield from _wrapped(f"So {counted(len(verdict.undecided), 'trap')} could not be decided: {ids}.", width)
    if verdict.needs_load:
        yield from _wrapped(
            f"{counted(len(verdict.needs_load), 'trap')} show only under load: --watch 30s looks twice.", width
        )


def _short(where: str) -> str:
    """A place without the long names of containers and pods."""
    return _LONG_NAME.sub(lambda each: f"{each[0][:12]}…", where)


def _labelled(label: str, content: str, width: int) -> Iterator[str]:
    yield from _wrapped(plain(content, _LONGEST), width, indent=" " * (3 + _LABEL), first=f"   {label:{_LABEL}}")


def _wrapped(content: str, width: int, *, indent: str = "", first: str | None = None) -> Iterator[str]:
    start = indent if first is None else first
    yield from textwrap.wrap(
        content,
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def as_tree(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """JSON tree: docs/guides/inspect.md."""
    return {"format": 1, "servers": [_server(each) for each in verdicts]}


def _server(verdict: Verdict) -> dict[str, Any]:
    subject = verdict.subject
    return {
        "name": subject.name,
        "process": subject.pid,
        "placed": subject.placed,
        "engine": subject.engine,
        "database": subject.database,
        "met": [_met_tree(each, verdict) for each in verdict.met],
        "fine": [each.id for each in verdict.fine],
        "undecided": {each.known.id: dict(each.lacks) for each in verdict.undecided},
        "needs_watch": [each.id for each in verdict.needs_load],
        "facts": {
            name: {"value": reading.value, "where": reading.where, "why": reading.why}
            for name, reading in verdict.readings.known.items()
        },
    }


def _met_tree(met: Met, verdict: Verdict) -> dict[str, Any]:
    trap = met.known.trap
    return {
        "trap": met.known.id,
        "title": trap.title,
        "says": trap.says,
        "evidence": {name: {"value": each.value, "where": each.where} for name, each in met.evidence.items()},
        "cost": {
            "of": trap.cost.of,
            "says": trap.cost.says,
            "claims": [{"claim": each.id, "effect": effect_words(each.claim)} for each in met.claims],
            "here_us": None
            if met.here is None
            else {"point": met.here.us, "low": met.here.low, "high": met.here.high, "n": met.here.n},
        },
        "remedy": {"says": trap.remedy.says, "lines": dict(pasted(met, verdict))},
        "measurable": bool(trap.study),
        "sources": [source.url for source in trap.sources],
    }
