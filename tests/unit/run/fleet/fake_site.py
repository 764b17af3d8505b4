"""The process of a fake site, for tests that need one to kill: a machine of fakes below the directory `FAKE_SITES`.

A file `refuses` in the site's directory has each connection to it fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.unit.run.conftest import make_rig

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.run.fleet.block_task import ConnectedMaker
from tare.run.fleet.site_process import main
from tare.run.interrupts import Interrupts
from tare.run.local import Engine, sweep_abandoned
from tare.run.machine import Machine
from tare.sites.file import SiteSpec
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

NO_ENGINE = Engine(None, "fakes need none")


def layout_of(sites: Path, name: str) -> Layout:
    """Where a fake site keeps what it makes."""
    return Layout(sites / name / "machine" / "home")


def swept(layout: Layout) -> tuple[str, ...]:
    """Remove what killed processes of the site left, as `tare clean --site` does on a real one."""
    return sweep_abandoned(LocalHost(), NO_ENGINE, SqliteLedger(layout.ledger), layout)


@contextmanager
def fake(spec: SiteSpec, plan: Plan, store: Path, interrupts: Interrupts) -> Iterator[Machine]:
    """A machine of fakes that bears the site's name."""
    sites = Path(os.environ["FAKE_SITES"])
    if (sites / spec.name / "refuses").exists():
        raise EnvironmentLacks(f"{spec.name} cannot be reached")
    room = sites / spec.name / "machine"
    room.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(room / "staging", ignore_errors=True)  # of an earlier connection
    machine = make_rig(room).machine
    yield replace(
        machine,
        site=replace(machine.site, labels={"site": spec.name}),
        interrupts=interrupts,
        sweep=lambda: swept(layout_of(sites, spec.name)),
    )


if __name__ == "__main__":
    sys.exit(main(lambda spec, interrupts: ConnectedMaker(spec, fake, interrupts)))
