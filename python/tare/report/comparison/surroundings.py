"""Differences between two stores in what surrounds their runs: study, machine, engine, images, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.plan.extension import Difference
from tare.record.run_record import RunRecord
from tare.report.setting import Property, compare, facts_in

_MOMENTARY = frozenset({
    "uptime_s", "load_1min", "load_5min", "load_15min", "cpu_mhz_now", "cpu_steal_s", "cpu_steal_fraction",
    "memory_available_bytes", "swap_used_bytes", "data_free_bytes", "engine_containers_running",
})  # fmt: skip
"""Facts that change within a minute."""


@dataclass(frozen=True)
class Unlike:
    """One difference. `group`: study, machine, engine, images or settings."""

    group: str
    name: str
    a: str
    b: str


def surroundings(
    a: Sequence[RunRecord], b: Sequence[RunRecord], arms: Sequence[str], keys: Sequence[Difference]
) -> tuple[Unlike, ...]:
    """List differences between the good runs of arms that both stores have; `keys`: differences of the study."""
    sides = [[run for run in each if run.outcome.ok and run.arm in arms] for each in (a, b)]
    trees: Mapping[str, Any] = {
        "machine": lambda run: facts_in(run.host),
        "engine": lambda run: run.engine and facts_in(run.engine),
        "images": _images,
        "settings": lambda run: run.effective,
    }
    differing = [*_of_study(keys)]
    for group, tree in trees.items():
        labelled = (
            (label, tree(run))
            for label, runs in zip("AB", sides, strict=True)
            for run in runs
            if tree(run) is not None
        )
        differing += _unlike(group, compare(labelled))
    return tuple(differing)


def _of_study(keys: Sequence[Difference]) -> Iterator[Unlike]:
    """List a key that differs alike in several arms only once."""
    arms: dict[tuple[str, str, str], list[str]] = {}
    for each in keys:
        name, _, rest = each.key.removeprefix("arms.").partition(".settings.")
        if each.key.startswith("arms.") and rest:
            arms.setdefault((rest, each.was, each.now), []).append(name)
        else:
            yield Unlike("study", each.key, each.was, each.now)
    for (key, was, now), names in arms.items():
        of = f" of {names[0]}" if len(names) == 1 else f" of {len(names)} arms"
        yield Unlike("study", f"{key}{of}", was, now)


def _unlike(group: str, properties: Sequence[Property]) -> Iterator[Unlike]:
    for each in properties:
        texts = {arm: value.text for value in each.values for arm in value.arms}
        if each.name.partition(".")[0] not in _MOMENTARY and set(texts) == {"A", "B"}:
            yield Unlike(group, each.name, texts["A"], texts["B"])


def _images(run: RunRecord) -> Mapping[str, Any]:
    """Return reference, digest and packages of each side's image."""
    return {
        side: {
            "reference": image.reference,
            "digest": image.digest,
            "package": dict(image.packages),
        }
        for side, image in run.images.items()
        if image is not None
    }
