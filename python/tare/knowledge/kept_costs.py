"""Location of a machine's unit costs: HOME/unit-costs/MACHINE/VERSIONS, with the stores beside the result."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tare.calibrate.archive import write_whole
from tare.calibrate.summary import Identity
from tare.errors import StoreError
from tare.knowledge.unit_costs import UnitCosts
from tare.sites.layout import Layout, make_directory

RESULT = "costs.json"


def costs_dir(layout: Layout, identity: Identity) -> Path:
    """Return the directory of a machine with its kernel and engine."""
    return layout.unit_costs / identity.machine_key / identity.versions_key


def keep(layout: Layout, costs: UnitCosts) -> None:
    """Replace the stored costs, completely or not at all."""
    folder = costs_dir(layout, costs.identity)
    make_directory(folder)
    write_whole(folder / RESULT, costs.model_dump_json(indent=1) + "\n")


def read_costs(layout: Layout, identity: Identity) -> UnitCosts | None:
    """Read the costs of this machine; `None` if it was never weighed. Raises `StoreError` for a damaged file."""
    path = costs_dir(layout, identity) / RESULT
    return _read(path) if path.exists() else None


def every_cost(layout: Layout) -> tuple[UnitCosts, ...]:
    """Read the costs of every known machine, ordered by key. Raises `StoreError` for a damaged file."""
    return tuple(_read(path) for path in sorted(layout.unit_costs.glob(f"*/*/{RESULT}")))


def _read(path: Path) -> UnitCosts:
    try:
        return UnitCosts.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise StoreError(f"{path} cannot be read", hint="remove it and run `tare weigh` again") from error
