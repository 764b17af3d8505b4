"""A tare of fakes that makes blocks of a shared store, in a process that tests can kill.

python -m tests.integration.stores.coordinator URL SITE BLOCKS LEASE_S DIRECTORY
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from tests.unit.run.conftest import make_plan, make_rig

from tare.run.execute import Destination, execute
from tare.run.interrupts import Interrupts
from tare.run.local import Engine, sweep_abandoned
from tare.run.resume import StudyState
from tare.sites.local import LocalHost
from tare.store import resume_store, shared_writer
from tare.store_place import parse_store_url

ARMS = ("plain", "other")


def main(url: str, site: str, blocks: str, lease_s: str, directory: str) -> None:
    plan = make_plan(blocks=int(blocks), arms=ARMS)
    shutil.rmtree(Path(directory) / "staging", ignore_errors=True)  # of one that was killed
    Path(directory).mkdir(parents=True, exist_ok=True)
    rig = make_rig(Path(directory))
    labelled = replace(rig.machine.site, labels={} if site == "-" else {"site": site})
    interrupts = Interrupts()
    machine = replace(
        rig.machine,
        site=labelled,
        interrupts=interrupts,
        sweep=lambda: sweep_abandoned(
            LocalHost(), Engine(None, "fakes need none"), rig.machine.ledger, rig.machine.layout
        ),
    )
    lease = patch.object(shared_writer, "LEASE_S", float(lease_s))
    with lease, resume_store(parse_store_url(url), plan) as writer, interrupts.installed():
        done = StudyState.from_records(writer.records())
        destination = Destination(writer.id, done, writer.staging, writer.claims)
        for kept in execute(plan, machine, destination, lambda event: report(str(event))):
            writer.commit_all(kept)
            report(f"committed {[record.run_id for record in kept]}")


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
