"""The `tare` command with the fakes let in, for tests that need a whole process to kill: no study can name them.

`HOST_FACTS` in the environment names a file of facts that this machine is to have: those of a stored run, which
later runs are held against. With `FAKE_SITES`, a directory, the sites of `--sites` are machines of fakes below it,
those of `tare worker` too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast
from unittest.mock import patch

from pydantic import TypeAdapter

from tare import cli
from tare.cli.machine import worker
from tare.cli.study import planned, running
from tare.deployments.registry import DEPLOYMENTS
from tare.monitors import Monitor
from tare.monitors.registry import MONITORS
from tare.plan.model import Plan
from tare.record.host_facts import HostFacts
from tare.run import local
from tare.run.fleet import workers
from tare.run.fleet.block_task import ConnectedMaker
from tare.run.interrupts import Interrupts
from tare.run.machine import Machine
from tare.sites.file import SiteSpec
from tare.study.registry import Registry, installed
from tare.workloads.registry import WORKLOADS


def with_fakes() -> Registry:
    """What is installed, and the fakes."""
    known = installed()
    return replace(
        known,
        databases={**known.databases, "fake": lambda _: None},
        workloads={name: workload.parameters for name, workload in WORKLOADS.items()},
        deployments={name: deployment.isolates_network for name, deployment in DEPLOYMENTS.items()},
    )


@dataclass(frozen=True)
class FakeSite:
    """The one site of a tare, as `ReachedSite`."""

    spec: SiteSpec
    store: Path
    stack: ExitStack

    def refuse(self, plan: Plan, disk_bytes: float | None = None) -> None:
        """It lacks nothing."""

    def machine(self, plan: Plan, here: Machine, interrupts: Interrupts) -> Machine:
        """A machine of fakes."""
        from tests.unit.run.fleet.fake_site import fake

        return self.stack.enter_context(fake(self.spec, plan, self.store, interrupts))


@contextmanager
def reached(spec: SiteSpec, store: Path) -> Iterator[FakeSite]:
    """In place of `reached_site`."""
    with ExitStack() as stack:
        yield FakeSite(spec, store, stack)


if __name__ == "__main__":
    traced_by_nobody = patch.dict(cast("dict[str, Monitor]", MONITORS.built_in), {"probe": MONITORS["fake"]})
    stored = os.environ.get("HOST_FACTS")
    on_that_machine: AbstractContextManager[object] = nullcontext()
    if stored is not None:
        facts = TypeAdapter(HostFacts).validate_json(Path(stored).read_bytes())
        on_that_machine = patch.object(local, "host_facts", lambda *_, **__: facts)
    fake_site = (sys.executable, "-m", "tests.unit.run.fleet.fake_site")
    on_fakes = ExitStack()
    if "FAKE_SITES" in os.environ:
        from tests.unit.run.fleet.fake_site import fake  # by PYTHONPATH, which other tests do without

        on_fakes.enter_context(patch.object(workers, "OwnWorkers", partial(workers.OwnWorkers, command=fake_site)))
        of_fakes = patch.object(worker, "by_ssh", lambda spec, interrupts: ConnectedMaker(spec, fake, interrupts))
        on_fakes.enter_context(of_fakes)
        on_fakes.enter_context(patch.object(running, "reached_site", reached))
    with patch.object(planned, "installed", with_fakes), traced_by_nobody, on_that_machine, on_fakes:
        cli.main()
