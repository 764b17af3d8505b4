"""What was in force around the runs: what is the same in all of them, and what differs between arms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from itertools import chain
from typing import Any

from tare.analyze.hosts import named_hosts
from tare.analyze.numbers import is_mapping
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.observation import Observation, Parity
from tare.record.run_record import RunRecord
from tare.run.parity.properties import SIDES, TOKEN, lies_on
from tare.study.model import Study

UNKNOWN = "—"
"""Null in a record: does not exist (a quota that is not set), or could not be read."""
BY_OTHERS = (
    "Unknown: others made these runs, and their files do not record images, settings, limits, network paths or "
    "machines."
)
"""Shown in place of all properties, for imported results."""
_SHOWN_VALUES = 3
_FIGURES = sorted(each.name for each in fields(Observation))
_FACTS = {kind: sorted(each.name for each in fields(kind)) for kind in (HostFacts, EngineFacts)}
_NAMED = re.compile(rf"(?<![\w-])tare-{TOKEN.pattern}(-[a-z0-9]+)?(?![a-z0-9])")
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True)
class Value:
    """A value and the arms that have it; `arms` is empty for all arms."""

    text: str
    arms: tuple[str, ...]


@dataclass(frozen=True)
class Property:
    """One key of a tree that every run recorded."""

    name: str
    values: tuple[Value, ...]

    @property
    def differs(self) -> bool:
        """Whether two arms have different values."""
        return len(self.values) > 1


@dataclass(frozen=True)
class Bits:
    """The image of one side: its reference, and what it resolved to."""

    sides: tuple[str, ...]
    reference: str
    digest: str
    engine_id: str
    packages: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Setting:
    """Everything around the runs. `asked`: names of the server variables that the study sets."""

    host: tuple[Property, ...]
    engine: tuple[Property, ...]
    images: tuple[Bits, ...]
    effective: tuple[Property, ...]
    asked: frozenset[str]
    parity: tuple[Property, ...]
    path: tuple[Property, ...]
    hosts: tuple[Property, ...] = ()
    """Side or node → its host; empty if one host ran everything."""
    others: tuple[tuple[str, tuple[Property, ...]], ...] = ()
    """For hosts other than the SUT's or first node's: the side or node, and the host's facts."""


def setting_of(study: Study, records: Sequence[RunRecord]) -> Setting:
    """Collect what surrounded the good runs, or all runs if none is good."""
    place = {arm.name: n for n, arm in enumerate(study.arms)}
    good = [record for record in records if record.outcome.ok] or list(records)
    used = sorted(_without_the_same(good), key=lambda record: place[record.arm])
    hosts = _hosts_namespaces(used)
    return Setting(
        host=compare(("", facts_in(record.host)) for record in _first_with(used, lambda one: one.host)),
        engine=compare(
            ("", facts_in(record.engine)) for record in _first_with(used, lambda one: one.engine) if record.engine
        ),
        images=_images(_first_with(used, lambda one: one.images)),
        effective=compare(
            (record.arm, _without_names(record.effective, record.run_id))
            for record in _first_with(used, lambda one: one.effective)
        ),
        asked=frozenset(_variable(name) for arm in study.arms if arm.placed for name in arm.placed.sut.settings),
        parity=_without_repeats(compare((record.arm, _parity(record, hosts)) for record in used)),
        path=compare((record.arm, _path_of(record)) for record in used),
        hosts=compare(("", named_hosts(record)) for record in used),
        others=_others(used),
    )


def _first_with(records: Sequence[RunRecord], tree: Callable[[RunRecord], object]) -> Iterator[RunRecord]:
    """Yield the first record of each arm with a tree: a store shares one tree among records."""
    seen: set[tuple[str, int]] = set()
    for record in records:
        if (place := (record.arm, id(tree(record)))) not in seen:
            seen.add(place)
            yield record


def _without_the_same(records: Sequence[RunRecord]) -> Iterator[RunRecord]:
    """Yield records without those whose surroundings equal another's of their arm, as most of 100,000 do."""
    seen: dict[tuple[object, ...], Parity] = {}
    for record in records:
        # A store shares one tree among records; other records have their own.
        key = (
            record.arm, id(record.host), id(record.engine), id(record.images), id(record.effective),
            id(record.settings),
        )  # fmt: skip
        before = seen.get(key)
        # 1 == 1.0 == True, but they are written differently.
        if (
            before is not None
            and before == record.parity
            and repr(before) == repr(record.parity)
            and _is_plain(record)
        ):
            continue
        yield record
        if before is None and _is_plain(record) and not _has_path(_trees(record.parity)):
            seen[key] = record.parity


def _is_plain(record: RunRecord) -> bool:
    """Whether a record has neither path, further hosts nor encryption."""
    way = (record.path, record.between, record.nodes, record.client_host)
    return way == (None, None, None, None) and (record.measurement is None or record.measurement.encryption is None)


def _has_path(tree: Any) -> bool:
    if is_mapping(tree):
        return any(map(_has_path, tree.values()))
    return any(map(_has_path, tree)) if isinstance(tree, list | tuple) else isinstance(tree, str) and "/" in tree


def _others(records: Sequence[RunRecord]) -> tuple[tuple[str, tuple[Property, ...]], ...]:
    found: dict[str, list[HostFacts]] = {}
    for record in records:
        further = ((name, node.host) for name, node in list((record.nodes or {}).items())[1:])
        for side, host in (*further, ("client", record.client_host)):
            if host is not None:
                found.setdefault(side, []).append(host)
    return tuple((side, compare(("", facts_in(host)) for host in each)) for side, each in found.items())


def facts_in(known: HostFacts | EngineFacts) -> Mapping[str, Any]:
    """Return the facts of a host or an engine by name, in the order of the alphabet; none of an unknown host."""
    return {} if known == HostFacts() else {name: getattr(known, name) for name in _FACTS[type(known)]}


def compare(trees: Iterable[tuple[str, Mapping[str, Any] | None]]) -> tuple[Property, ...]:
    """Compare the trees of arms by key; if an arm's runs disagree, their values become one text.

    What changes between runs of every arm (an uptime, a host name) is no difference between arms.
    """
    seen: dict[str, dict[str, dict[str, None]]] = {}
    arms: dict[str, None] = {}
    for arm, tree in trees:
        arms.setdefault(arm)
        for key, text in flatten(tree).items() if tree else ():
            seen.setdefault(key, {}).setdefault(arm, {}).setdefault(text)
    texts = {key: {arm: list(each) for arm, each in of_arms.items()} for key, of_arms in seen.items()}
    properties = (_property(key, of_arms, tuple(arms)) for key, of_arms in texts.items())
    return tuple(each for each in properties if not _only_parts(each, seen))


def _only_parts(one: Property, seen: Mapping[str, object]) -> bool:
    """Whether a property has only sub-keys, which have lines of their own."""
    nothing = all(value.text == UNKNOWN for value in one.values)
    return nothing and any(key.startswith(f"{one.name}.") for key in seen)


def _without_repeats(properties: tuple[Property, ...]) -> tuple[Property, ...]:
    """Remove properties seen after the measurement that equal those seen before."""
    before = {each.name: each.values for each in properties}

    def repeated(one: Property) -> bool:
        side, after, key = one.name.partition("_after.")
        return bool(after) and before.get(f"{side}.{key}") == one.values

    return tuple(one for one in properties if not repeated(one))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Flatten nested keys, joined by dots, with values as text."""
    flat: dict[str, str] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if is_mapping(value) and value:
            flat.update(flatten(value, f"{name}."))
        else:
            flat[name] = shown(value)
    return flat


def shown(value: object) -> str:
    """Return a JSON value as people write it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(shown(each) for each in value) or "none"
    if is_mapping(value):
        return ", ".join(f"{key} {shown(each)}" for key, each in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _property(name: str, seen: Mapping[str, list[str]], arms: tuple[str, ...]) -> Property:
    if all(len(seen.get(arm, ())) > 1 for arm in arms):
        return Property(name, (Value(_one_text(list(dict.fromkeys(chain.from_iterable(seen.values())))), ()),))
    by_text: dict[str, list[str]] = {}
    for arm in arms:
        by_text.setdefault(_one_text(seen.get(arm, [UNKNOWN])), []).append(arm)
    if len(by_text) == 1:
        return Property(name, (Value(next(iter(by_text)), ()),))
    return Property(name, tuple(Value(text, tuple(having)) for text, having in by_text.items()))


def _one_text(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    try:
        numbers = sorted(float(text) for text in texts)
    except ValueError:
        more = f" and {len(texts) - _SHOWN_VALUES} more" if len(texts) > _SHOWN_VALUES else ""
        return f"from run to run: {'; '.join(sorted(texts)[:_SHOWN_VALUES])}{more}"
    return f"{numbers[0]:.15g} to {numbers[-1]:.15g}"


def _path_of(record: RunRecord) -> Mapping[str, Any] | None:
    """Return the path without what is unique to each run: ports, the proxy's process, numbers of namespaces.

    Includes the encryption that connections agreed on.
    """
    path, agreed = record.path, record.measurement and record.measurement.encryption
    encryption = {} if agreed is None else {"tls_version": agreed.version, "tls_cipher": agreed.cipher}
    if path is None:
        return encryption or None
    return {
        "carrier": path.carrier and asdict(path.carrier),
        "client_dialled": path.client_dialled and path.client_dialled.address,
        "client_hop": path.client_hop,
        "connections": path.connections,
        "hop": path.hop,
        "server_sees": path.server_sees and path.server_sees.address,
        "wire": path.wire and asdict(path.wire),
        "docker_proxy": path.proxy is not None,
        "one_network_namespace": path.client_namespace == path.server_namespace if path.client_namespace else None,
        **encryption,
    }


def _parity(record: RunRecord, hosts: frozenset[tuple[str, str]]) -> Mapping[str, Any]:
    """Return what was in force, without names and numbers that are unique to each run."""
    sides = {side: _without_names(tree, record.run_id) for side, tree in _trees(record.parity).items()}
    servers = frozenset(_namespaces(record.parity.sut))
    return {
        side: _with_owners(
            _on_file_systems(_one_place(seen)), hosts, servers if side.startswith("client") else frozenset()
        )
        if is_mapping(seen)
        else seen
        for side, seen in sides.items()
    }


def _hosts_namespaces(records: Sequence[RunRecord]) -> frozenset[tuple[str, str]]:
    """Return kind and number of the host's namespaces: a bare side's, except mounts and those shared with a SUT."""
    common: set[tuple[str, str]] = set()
    bare_in: dict[int, frozenset[str]] = {}
    for record in records:
        asked = id(record.settings)  # records of an arm share them: `_first_with`
        if asked not in bare_in:
            bare_in[asked] = _bare_sides(record.settings)
        if not (bare := bare_in[asked]):
            continue
        places = {side: set(_namespaces(record.parity.of(side))) for side in SIDES}
        shared = set() if "sut" in bare else places["sut"]
        common |= {pair for side in bare for pair in places[side] - shared if pair[0] != "mnt"}
    return frozenset(common)


def _bare_sides(settings: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        side for side, asked in settings.items() if is_mapping(asked) and asked.get("deployment") == "bare"
    )


def _trees(parity: Parity) -> dict[str, Mapping[str, Any] | None]:
    """Return each side that was looked at with its figures by name."""
    sides = {"client": parity.client, "sut": parity.sut}
    if "sut_after" in parity.model_fields_set:
        sides["sut_after"] = parity.sut_after
    return {side: seen and {name: _tree(getattr(seen, name)) for name in _FIGURES} for side, seen in sides.items()}


def _tree(value: object) -> object:
    """Return what is known of a part as a mapping, and any other value as it is."""
    if not is_dataclass(value):
        return value
    values = {each.name: _tree(getattr(value, each.name)) for each in fields(value)}
    return {name: value for name, value in values.items() if value is not None}


def _namespaces(seen: Observation | None) -> Iterable[tuple[str, str]]:
    return () if seen is None else seen.namespaces.items()


def _with_owners(
    seen: Mapping[str, Any], hosts: frozenset[tuple[str, str]], servers: frozenset[tuple[str, str]]
) -> Mapping[str, Any]:
    """Name namespaces by their owner; by their numbers if no bare side shows the host's."""
    if not hosts or not seen["namespaces"]:
        return seen
    known = {**dict.fromkeys(servers, "the SUT's"), **dict.fromkeys(hosts, "the host's")}
    kinds = {kind for kind, _ in hosts} | {"mnt"}
    words = {
        kind: known.get((kind, number), "its own") if kind in kinds else number
        for kind, number in seen["namespaces"].items()
    }
    return {**seen, "namespaces": words}


def _one_place(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reduce control group hierarchies to one path, if a side has the same path in all of them."""
    groups = seen.get("cgroups")
    if not is_mapping(groups) or len(set(groups.values())) != 1:
        return seen
    return {**seen, "cgroups": next(iter(groups.values()))}


def _on_file_systems(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop the device numbers of mounts that have no device: each mount has another."""
    root, mounts = seen.get("root_mount"), seen.get("mounts")
    named = {**seen, "root_mount": lies_on(root)} if isinstance(root, str) else seen
    if not is_mapping(mounts):
        return named
    return {**named, "mounts": {path: lies_on(str(mount)) for path, mount in mounts.items()}}


def _without_names(tree: Any, run_id: str) -> Any:
    """Replace the run's own name by RUN, and the name of its container by CONTAINER."""
    if is_mapping(tree):
        return {key: _without_names(value, run_id) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_without_names(value, run_id) for value in tree]
    if not isinstance(tree, str):
        return tree
    if "/" not in tree:
        return _NAMED.sub("CONTAINER", tree)
    return TOKEN.sub("RUN", _CONTAINER.sub("CONTAINER", tree.replace(run_id, "RUN")))


def _images(records: Iterable[RunRecord]) -> tuple[Bits, ...]:
    sides: dict[str, list[str]] = {}
    bits: dict[str, ImageFacts] = {}
    for record in records:
        for side, image in record.images.items():
            if image is None:
                continue
            key = f"{image.reference} {image.digest} {image.engine_id}"
            bits.setdefault(key, image)
            if side not in sides.setdefault(key, []):
                sides[key].append(side)
    return tuple(_bits(bits[key], tuple(sides[key])) for key in bits)


def _bits(image: ImageFacts, sides: tuple[str, ...]) -> Bits:
    return Bits(
        sides=sides,
        reference=shown(image.reference),
        digest=shown(image.digest),
        engine_id="not in an engine" if image.engine_id is None else image.engine_id,
        packages=image.packages,
    )


def _variable(name: str) -> str:
    """Normalise a variable's name: servers accept both spellings and report one."""
    return name.replace("-", "_").lower()
