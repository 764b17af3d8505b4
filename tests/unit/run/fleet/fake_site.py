"""The process of a fake site, for tests that need one to kill: a machine of fakes below the directory `FAKE_SITES`.

A file `refuses` in the site's directory has each connection to it fail.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.unit.run.conftest import make_rig

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.run.fleet.site_process import main
from tare.run.interrupts import Interrupts
from tare.run.machine import Machine
from tare.sites.file import SiteSpec


@contextmanager
def fake(spec: SiteSpec, plan: Plan, store: Path, interrupts: Interrupts) -> Iterator[Machine]:
    """A machine of fakes that bears the site's name."""
    directory = Path(os.environ["FAKE_SITES"]) / spec.name
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / "refuses").exists():
        raise EnvironmentLacks(f"{spec.name} cannot be reached")
    room = directory / str(os.getpid())
    room.mkdir(exist_ok=True)
    if (room / "staging").exists():  # connected anew
        (room / "staging").rmdir()
    machine = make_rig(room).machine
    yield replace(machine, site=replace(machine.site, labels={"site": spec.name}), interrupts=interrupts)


if __name__ == "__main__":
    sys.exit(main(fake))
