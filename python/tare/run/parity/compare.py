"""Whether runs may be compared: they differ in the factors of the study, and in nothing else.

Pure: records in, named differences out. `properties` defines what is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from tare.record.run_record import RunRecord
from tare.run.parity.exchanged import exchanged
from tare.run.parity.named import traps_of
from tare.run.parity.properties import (
    BY_NATURE,
    ENVIRONMENT,
    LATER,
    NETWORK_SETTING,
    OF_ARM,
    PLUGIN,
    SIDES,
    TLS,
    Reading,
    host_readings,
    normal_key,
    of_host,
    plugin_readings,
    readings,
    tls_readings,
    variables,
)
from tare.study.model import Study
from tare.study.protocol_spec import DuetSpec
from tare.study.values import cpu_set
from tare.traps.met import Met

_ABSENT = "not there"
CPU_SET = "SUT: CPU set"
_GROUPS_ALIKE = frozenset({"bare", "container"})
"""Deployments whose groups get the same limits of memory and swap from a study, on the same memory nodes."""
_PLACED = ("sut.limits.cpus", "client.limits.cpus")
"""Settings that a duet changes for both arms in turn; `declared` checks that each arm runs on its slot's CPUs."""


@dataclass(frozen=True)
class Difference:
    """A property in which two runs differ though no factor varies it: `cpu weight: 1024 in bare, 512 in bridge`."""

    name: str
    reference: Any
    reference_arm: str
    value: Any
    arm: str
    traps: tuple[Met, ...] = ()
    """Known traps that it is, which one of the two runs meets."""

    def __str__(self) -> str:
        there, here = _as_text(self.reference), _as_text(self.value)
        return f"{self.name}: {there} in {self.reference_arm}, {here} in {self.arm}"


@dataclass(frozen=True)
class KnownVariables:
    """What is known of a database's variables. See `databases.Database`."""

    per_run: frozenset[str] = frozenset()
    derived_settings: Mapping[str, frozenset[str]] = field(default_factory=dict)


def differences(
    study: Study, reference: RunRecord, record: RunRecord, server: KnownVariables | None = None
) -> tuple[Difference, ...]:
    """List all undeclared differences of `record` from `reference`, in a fixed order.

    If server and client have swapped hosts in between, each host is compared with itself: the record is compared
    with what the reference would say of the same two hosts in their new parts.
    """
    named = frozenset(normal_key(key) for key in named_keys(study, reference.levels, record.levels))
    before, after = (_readings(each, server or KnownVariables()) for each in exchanged(reference, record))
    unlike = []
    for name in dict.fromkeys(chain(before, after)):
        there, here = before.get(name), after.get(name)
        one = there or here
        if one is None or _value(there) == _value(here) or one.keys & named:
            continue
        if one.nature and one.nature in by_nature(name, reference, record):
            continue
        if (there is None or here is None) and _unseen(name, reference, record):
            continue
        unlike.append(Difference(name, _value(there), reference.arm, _value(here), record.arm))
    return tuple(
        replace(each, traps=traps_of(each.name, reference, record))
        for each in (*unlike, *_other_hop(reference, record))
    )


def named_keys(study: Study, one: Mapping[str, str], other: Mapping[str, str]) -> frozenset[str]:
    """Return the dotted keys of the factors in which two arms have different levels."""
    factors = [factor for factor in study.varies if one.get(factor) != other.get(factor)]
    by_protocol = _PLACED if isinstance(study.protocol, DuetSpec) else ()
    return frozenset(chain(by_protocol, *(study.varies[factor] for factor in factors)))


def by_nature(name: str, one: RunRecord, other: RunRecord) -> frozenset[str]:
    """Return the properties that necessarily differ between the deployments of two arms on a property's side."""
    side = "client" if name.startswith("client") else "sut"
    pair = frozenset(_deployment(record, side) for record in (one, other))
    if len(pair) < 2:
        return BY_NATURE.get(pair, frozenset())
    # unless a study sets it, systemd and Podman limit the number of processes, each in its own way
    own = {"pids", "label", "filter"} | (set() if pair == _GROUPS_ALIKE else {"swap", "mems", "group"})
    return BY_NATURE.get(pair, frozenset()) | own


def changed_during(
    record: RunRecord, after: RunRecord, server: KnownVariables | None = None, moved_to: str | None = None
) -> tuple[str, ...]:
    """List what is no longer in force around the SUT after the measure phase, a sentence each.

    `moved_to`: CPU list that the protocol itself has moved the SUT to meanwhile. What could not be read before is
    not compared: unknown is not the same as absent.
    """
    server = server or KnownVariables()
    if record.parity.sut is None:
        after = after.model_copy(update={"parity": after.parity.with_sut(None)})
    before, later = _readings(record, server), _readings(after, server)
    if moved_to is not None and _value(before.get(CPU_SET)) not in (None, _ABSENT):
        before[CPU_SET] = replace(before[CPU_SET], value=_kernel_cpu_list(moved_to))
    return _unequal(before, later, "before", "afterwards")


def unlike_nodes(nodes: Mapping[str, RunRecord], server: KnownVariables | None = None) -> tuple[str, ...]:
    """List how nodes of one SUT differ from its first node, a sentence each; their hosts may differ.

    `nodes`: node → the run's record as if the SUT were that node alone.
    """
    seen = {name: _without_host(_readings(record, server or KnownVariables())) for name, record in nodes.items()}
    first, *others = seen
    unlike: list[str] = []
    for other in others:
        there, here = dict(seen[first]), dict(seen[other])
        for name in there.keys() ^ here.keys():
            if _unseen(name, nodes[first], nodes[other]):
                there.pop(name, None)
                here.pop(name, None)
        unlike += _unequal(there, here, f"in {first}", f"in {other}")
    return tuple(unlike)


def as_sentence(parts: Iterable[object]) -> str:
    """Join differences into one line, the first five in full, and name the known traps that they are."""
    listed = list(parts)
    more = f"; and {len(listed) - 5} more" if len(listed) > 5 else ""
    traps = dict.fromkeys(met.brief for each in listed if isinstance(each, Difference) for met in each.traps)
    return "; ".join(map(str, listed[:5])) + more + "".join(f". Known trap: {each}" for each in traps)


def _readings(record: RunRecord, server: KnownVariables) -> dict[str, Reading]:
    every: Iterator[Reading] = chain(
        *(readings(record, side) for side in SIDES),
        variables(record, server.per_run, server.derived_settings),
        tls_readings(record),
        plugin_readings(record),
        host_readings(record),
    )
    return {reading.name: reading for reading in every}


def _without_host(seen: Mapping[str, Reading]) -> dict[str, Reading]:
    return {name: each for name, each in seen.items() if not of_host(name) and NETWORK_SETTING not in name}


def _unequal(before: Mapping[str, Reading], later: Mapping[str, Reading], there: str, here: str) -> tuple[str, ...]:
    return tuple(
        f"{name}: {_as_text(_value(before.get(name)))} {there}, {_as_text(_value(later.get(name)))} {here}"
        for name in dict.fromkeys(chain(before, later))
        if not name.startswith(("client", *OF_ARM)) and _value(before.get(name)) != _value(later.get(name))
    )


def _unseen(name: str, reference: RunRecord, record: RunRecord) -> bool:
    """Whether a property is missing rather than different: the side or the variables were never observed.

    That also holds for an environment that the program has overwritten, for facts that older records lack, and for
    a plug-in that only one arm uses. The encryption of connections is known only once they have been measured.
    """
    if of_host(name) or name.startswith((PLUGIN, TLS)) or name.endswith(LATER) or NETWORK_SETTING in name:
        return True
    if name.startswith("variable "):
        return reference.effective is None or record.effective is None
    side = "client" if name.startswith("client") else "sut"
    seen = [each.parity.of(side) for each in (reference, record)]
    return any(each is None or (ENVIRONMENT in name and each.environment is None) for each in seen)


def _kernel_cpu_list(cpus: str) -> str:
    """Normalise a CPU list to the form of /proc/PID/status: `"1,0"` → `"0-1"`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpu_set(cpus)):
        if ranges and cpu == ranges[-1][-1] + 1:
            ranges[-1].append(cpu)
        else:
            ranges.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ranges)


def _other_hop(reference: RunRecord, record: RunRecord) -> Iterator[Difference]:
    """Yield a difference if runs of one arm reach the server by different paths, such as docker-proxy and DNAT."""
    there, here = (each.path and each.path.hop for each in (reference, record))
    if reference.arm == record.arm and there and here and there != here:
        yield Difference(
            "network path", there, f"{reference.arm} ({reference.run_id})", here, f"{record.arm} ({record.run_id})"
        )


def _value(reading: Reading | None) -> Any:
    return _ABSENT if reading is None else reading.value


def _deployment(record: RunRecord, side: str) -> str:
    placement = record.settings.get(side)
    return str(placement.get("deployment")) if isinstance(placement, Mapping) else ""


def _as_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_as_text(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ",".join(_as_text(each) for each in value) or "none"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:24]}…{text[-8:]}"
