"""Files that users write: studies, claims, mappings of imports, sites and recipes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from ruamel.yaml import YAML

from tare.cli.study.plan import as_json
from tare.images.recipe.file import read_recipe
from tare.imports import load_mapping
from tare.knowledge.claim import load_claim, load_claims
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.expand import expand
from tare.sites.file import load_sites
from tare.study.catalogue import recipes, studies
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.workloads.registry import BUILT_IN as WORKLOADS
from tools.fuzz import mutations
from tools.fuzz.grown import grown

REPOSITORY = Path(__file__).parents[2]
_MOST = 1e15
"""No number of a study can be meant to be larger: 30 million years in seconds, a petabyte in bytes."""


class Accepted(Exception):
    """A finding: what cannot be meant was taken in silence."""


def as_text(tree: Any) -> str:
    """As YAML that is JSON, which keeps whatever a tree holds."""
    return json.dumps(tree).replace("NaN", ".nan").replace("Infinity", ".inf")


@cache
def _yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text())


@cache
def _schema(name: str) -> Any:
    return json.loads((REPOSITORY / "schemas" / f"{name}.schema.json").read_text())


def _studies() -> list[Path]:
    return sorted([*studies().values(), *(REPOSITORY / "docs" / "examples").glob("*/study.yaml")])


def study(chance: Random, place: Path) -> object:  # noqa: ARG001 - a target's
    """Shipped studies: changed as trees or as texts, crossed with each other; what is read makes a plan."""
    path, other = chance.choice(_studies()), chance.choice(_studies())
    kind = chance.random()
    if kind < 0.6:
        text = as_text(mutations.tree(_yaml(path), chance))
    elif kind < 0.8:
        text = as_text(mutations.crossed(_yaml(path), _yaml(other), chance))
    else:
        text = mutations.text(path.read_text(), chance)
    plan = expand(loads(text, installed(), file="study.yaml"))
    document = as_json(plan, estimate(plan, data_sets(WORKLOADS)))
    if odd := next(_odd(document, "plan"), None):
        raise Accepted(odd)
    return json.dumps(document, allow_nan=False)


def _odd(value: Any, where: str) -> Any:
    if isinstance(value, float | int) and not isinstance(value, bool):
        if not math.isfinite(value) or abs(value) > _MOST:
            yield f"{value!r} at {where}"
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _odd(each, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _odd(each, f"{where}.")


def claim(chance: Random, place: Path) -> object:
    """Shipped claims."""
    source = chance.choice([known.file for known in load_claims()])
    return load_claim(_file(place / "claim.yaml", source, chance, "claim"))


def mapping(chance: Random, place: Path) -> object:
    """The shipped mapping of an import."""
    source = REPOSITORY / "studies" / "grambow-2018" / "import.yaml"
    return load_mapping(_file(place / "import.yaml", source, chance, "import"))


def sites(chance: Random, place: Path) -> object:
    """The example of a sites file, and ones grown from its schema."""
    source = REPOSITORY / "docs" / "examples" / "fleet" / "sites.yaml"
    found = load_sites(_file(place / "sites.yaml", source, chance, "sites", grow=0.6))
    return [host.display_name for site in found.sites for host in site.hosts if not isinstance(host, str)]


def recipe(chance: Random, place: Path) -> object:
    """Shipped recipes of images."""
    source = chance.choice(sorted(recipes().values()))
    return read_recipe(_file(place / "recipe.yaml", source, chance, None))


def _file(target: Path, source: Path, chance: Random, schema: str | None, *, grow: float = 0.2) -> Path:
    kind = chance.random()
    if schema is not None and kind < grow:
        changed = as_text(grown(_schema(schema), chance))
    elif kind < 0.75:
        changed = as_text(mutations.tree(_yaml(source), chance))
    else:
        changed = mutations.text(source.read_text(), chance)
    target.write_text(changed, encoding="utf-8", errors="surrogatepass")
    return target
