"""Virtual machines that fail on real QEMU: each is told with the console's tail, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.deployments.machines import SERVE, MakeMachine

import tare.deployments.vm as module
from tare.deployments import Deployment, Instance, NetworkKind, Task
from tare.deployments.vm_command import qemu_argv
from tare.errors import TimedOut
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = pytest.mark.engine

Started = Callable[[Deployment, Task], Instance]


def test_a_machine_that_hangs_at_boot_is_given_up(
    vm: Deployment, make: MakeMachine, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "qemu_argv", lambda *given: (*qemu_argv(*given), "-S"))  # its CPUs never begin
    monkeypatch.setattr(module, "BOOT_S", 2.0)
    with pytest.raises(TimedOut, match="the virtual machine did not answer within 2 s: it said nothing"):
        vm.start(make(*SERVE, network=NetworkKind.TAP))
    assert not list(ledger.entries())
    assert not list(Path("/sys/class/net").glob("tar[bt]*"))
