"""Cost of a VM exit on this machine, measured inside a guest.

Only guests under KVM have VM exits. Where QEMU emulates guests (TCG), tare starts none and reports why KVM runs no
guest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from tare.deployments.vm.accelerator import MACHINE, Verdict, accelerator_of, verdict_without_trial
from tare.deployments.vm.command import EXITS_S, Accelerator, exits_argv
from tare.deployments.vm.kernel import kernel_of
from tare.errors import RunFailed, TareError, TimedOut
from tare.knowledge.event_costs import EventCost, event_cost
from tare.requirements import HostPlan
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger

_LINE, _KVM = "tare-guest: exits: ", "KVMKVMKVM"
_EXIT: Final = "exit"


def machine_events(host: Host, ledger: Ledger, layout: Layout) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Start a guest that measures; a `TareError` becomes one of the returned lacks."""
    try:
        if why := MACHINE.why_not(HostPlan(host)):
            return (), (f"VM exit: {why}",)
        verdict = verdict_without_trial(host, layout)
        if verdict is not None and verdict.accelerator is not Accelerator.KVM:
            return (), (_without_kvm(verdict),)  # before a kernel is fetched, which can take minutes
        kernel = kernel_of(host, ledger, layout)
        verdict = verdict or accelerator_of(host, layout, kernel)
        if verdict.accelerator is not Accelerator.KVM:
            return (), (_without_kvm(verdict),)
        return costs_of_guest(_printed(host, exits_argv(verdict.accelerator, kernel.image, kernel.initramfs)))
    except TareError as error:
        return (), (f"VM exit: {error}",)


def _without_kvm(verdict: Verdict) -> str:
    return f"VM exit: emulation (TCG) has none, and KVM runs no guest here: {verdict.why}"


def _printed(host: Host, argv: Sequence[str]) -> str:
    """Return a guest's output. Raises `RunFailed` if it hangs: `tare weigh` has ten minutes in all."""
    try:
        return host.run(argv, timeout_s=EXITS_S, check=False).text
    except TimedOut as error:
        raise RunFailed(f"a guest was not done within {EXITS_S:g} s") from error


def costs_of_guest(printed: str) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Parse a guest's console. Raises `RunFailed` unless the output is complete and KVM ran the guest."""
    line = next((each for each in printed.splitlines() if _LINE in each), None)
    if line is None:
        raise RunFailed("the guest printed no figures", hint="a study with `deployment: vm` keeps its console")
    try:
        tree: Any = json.loads(line.partition(_LINE)[2])
        run_by, ways, lacks = tree["run_by"], tree["events"], tuple(map(str, tree["lacks"]))
        costs = (event_cost(_EXIT, ways[_EXIT], where="vm", accelerator="kvm"),) if _EXIT in ways else ()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"what the guest printed is not whole: {error}") from error
    if run_by != _KVM:
        raise RunFailed(f"the guest should be run by KVM, and reports {run_by or 'nothing'}")
    return costs, lacks
