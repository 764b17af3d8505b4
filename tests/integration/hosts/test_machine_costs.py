"""A VM exit of this machine: measured where KVM runs guests, and left out with the reason elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.deployments.vm.accelerator import MACHINE, cached_accelerator
from tare.deployments.vm.command import Accelerator
from tare.knowledge.machine_costs import machine_events
from tare.requirements import HostPlan
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.root, pytest.mark.slow]


def test_a_vm_exit_is_measured_under_kvm_and_nowhere_else(tmp_path: Path) -> None:
    if why := MACHINE.why_not(HostPlan(LocalHost())):
        pytest.skip(why)
    layout = Layout(tmp_path)
    events, lacks = machine_events(LocalHost(), SqliteLedger(layout.ledger), layout)
    verdict = cached_accelerator(LocalHost(), layout)
    if verdict is not None and verdict.accelerator is Accelerator.KVM:
        assert 50 < events[0].ns < 1_000_000
    else:
        assert events == ()
        assert lacks[0].startswith("VM exit: emulation (TCG) has none")
