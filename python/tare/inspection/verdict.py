"""Every trap asked about one server: met, not met, or not decided, with evidence and expected cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.inspection.readings import Reading, Readings
from tare.inspection.subject import Subject
from tare.knowledge.claim import ClaimFile
from tare.knowledge.unit_costs import UnitCost, UnitCosts
from tare.traps.predicate import NONE, Answer, Known
from tare.traps.trap import TrapFile

_ORDER = {"correctness": 0, "availability": 1, "performance": 2}
_WORTH_KIB = 1024


@dataclass(frozen=True)
class Met:
    """A trap that a server meets. `evidence`: fact → its reading. `claims`: the expected cost, as measured."""

    known: TrapFile
    evidence: Mapping[str, Reading]
    claims: tuple[ClaimFile, ...] = ()
    here: UnitCost | None = None
    """What a request costs more on this machine, where it was weighed."""


@dataclass(frozen=True)
class Open:
    """A trap that could not be decided. `lacks`: fact → why it is not known."""

    known: TrapFile
    lacks: Mapping[str, str]


@dataclass(frozen=True)
class Verdict:
    """What was found at one server."""

    subject: Subject
    met: tuple[Met, ...]
    fine: tuple[TrapFile, ...]
    undecided: tuple[Open, ...]
    needs_load: tuple[TrapFile, ...]
    """Traps that only `--watch` can see, if it was not watched."""
    readings: Readings


def verdict(  # noqa: PLR0913 - what a verdict is made of
    subject: Subject,
    readings: Readings,
    traps: Sequence[TrapFile],
    claims: Sequence[ClaimFile] = (),
    *,
    weighed: UnitCosts | None = None,
    watched: bool = False,
) -> Verdict:
    """Ask every trap. A cost that is not known is left out, not guessed. `weighed`: this machine's unit costs."""
    facts, by_id = readings.facts, {claim.id: claim for claim in claims}
    met, fine, undecided, needs_load = [], [], [], []
    for known in traps:
        if known.trap.under_load and not watched:
            needs_load.append(known)
            continue
        said = known.trap.ask(facts)
        if said is Answer.YES:
            evidence = {name: readings.known[name] for name in known.trap.facts if name in readings.known}
            costs = tuple(by_id[name] for name in known.trap.cost.claims if name in by_id)
            met.append(Met(known, evidence, costs, _here(known, weighed)))
        elif said is Answer.NO or _not_set(known, readings):
            fine.append(known)
        else:
            undecided.append(Open(known, _lacks(known, readings)))
    met.sort(key=lambda each: (_ORDER[each.known.trap.cost.of], each.known.id))
    return Verdict(subject, tuple(met), tuple(fine), tuple(undecided), tuple(needs_load), readings)


def _here(known: TrapFile, weighed: UnitCosts | None) -> UnitCost | None:
    network = known.trap.cost.unit_cost
    if weighed is None or network is None:
        return None
    return weighed.of(("container", "bare", network.value), "busy", "machine-cpu")


def _not_set(known: TrapFile, readings: Readings) -> bool:
    """Whether all that is missing are settings that the server does not have, so that the trap cannot be met."""
    lacks = _lacks(known, readings)
    return bool(lacks) and all(why.startswith("not ") for why in lacks.values())


def _lacks(known: TrapFile, readings: Readings) -> Mapping[str, str]:
    unread = readings.unread
    asked = (*(("database",) if known.trap.hits.databases else ()), *known.trap.facts)
    return {name: unread[name] for name in asked if name in unread}


def shown(name: str, value: Known | None) -> str:
    """A fact's value for people: sizes in their unit, shares in percent."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    if name.endswith(("_bytes", ".bytes")):
        return in_units(value)
    if name.endswith(("_share", "_fraction")):
        return f"{100 * value:.1f} %"
    return f"{value:g}" if isinstance(value, float) else str(value)


def in_units(count: float) -> str:
    """Bytes in the largest unit of which there is one: `64 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < _WORTH_KIB:
            return f"{count:.4g} {unit}"
        count /= _WORTH_KIB
    return f"{count:.4g} TiB"


__all__ = ["NONE", "Met", "Open", "Verdict", "in_units", "shown", "verdict"]
