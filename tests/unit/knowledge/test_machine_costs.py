"""A VM exit, timed by a guest under KVM, or left out with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.knowledge.test_prediction import cost, costs

from tare.cli.study.weigh import render
from tare.deployments.vm.accelerator import Verdict
from tare.deployments.vm.command import EXITS_S, QEMU, TRIAL_S, Accelerator, exits_argv, trial_argv
from tare.errors import RunFailed, TimedOut
from tare.knowledge.machine_costs import costs_of_guest, machine_events
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.testing import UntouchableLedger

MODULE = "tare.knowledge.machine_costs"
TCG = Verdict(Accelerator.TCG, "a guest under KVM printed nothing within 20 s")
WAYS = {"first": [1200.0, 1250.0, 1300.0], "second": [1190.0, 1240.0, 1310.0]}


def printed(run_by: str, **more: Any) -> str:
    tree = {"run_by": run_by, "events": {"exit": WAYS}, "lacks": [], **more}
    return f"[    1.2] booted\r\ntare-guest: exits: {json.dumps(tree)}\r\n[    1.3] reboot: Power down\r\n"


def test_under_kvm_a_vm_exit_is_measured_in_two_ways_and_shown() -> None:
    (event,), lacks = costs_of_guest(printed("KVMKVMKVM"))
    assert lacks == ()
    assert (event.event, event.where, event.accelerator, event.ns) == ("exit", "vm", "kvm", 1250.0)
    assert event.agree
    known = costs(cost("machine-cpu", 1.0)).model_copy(update={"events": (event,)})
    assert "virtual machine, kvm" in render(known, width=80)
    assert type(known).model_validate_json(known.model_dump_json()) == known


def test_what_the_guest_could_not_measure_is_passed_on() -> None:
    given = printed("KVMKVMKVM", events={}, lacks=["exit: this processor has no CPUID"])
    assert costs_of_guest(given) == ((), ("exit: this processor has no CPUID",))


@pytest.mark.parametrize("run_by", ["TCGTCGTCGTCG", "", "VMwareVMware"])
def test_a_figure_of_anything_but_kvm_is_refused(run_by: str) -> None:
    with pytest.raises(RunFailed, match="should be run by KVM"):
        costs_of_guest(printed(run_by))


@pytest.mark.parametrize(
    "output", ["", "tare-guest: trial: run by KVMKVMKVM\n", "tare-guest: exits: {", "tare-guest: exits: []"]
)
def test_output_that_is_not_whole_is_refused(output: str) -> None:
    with pytest.raises(RunFailed, match=r"no figures|not whole"):
        costs_of_guest(output)


def test_a_guest_that_hangs_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        def run(self, *_: Any, timeout_s: float, **__: Any) -> None:
            assert timeout_s <= 30.0
            raise TimedOut("qemu did not end")

    monkeypatch.setattr(f"{MODULE}.MACHINE", SimpleNamespace(why_not=lambda _: None))
    monkeypatch.setattr(f"{MODULE}.kernel_of", lambda *_: type("Kernel", (), {"image": "/k", "initramfs": "/i"}))
    monkeypatch.setattr(f"{MODULE}.verdict_without_trial", lambda *_: None)
    monkeypatch.setattr(f"{MODULE}.accelerator_of", lambda *_: Verdict(Accelerator.KVM, None))
    host: Any = Hanging()
    assert machine_events(host, host, Layout(Path("/home/t"))) == (
        (),
        ("VM exit: a guest was not done within 30 s",),
    )
    monkeypatch.setattr(f"{MODULE}.accelerator_of", lambda *_: TCG)  # nothing is started then
    assert machine_events(host, host, Layout(Path("/home/t"))) == (
        (),
        (f"VM exit: emulation (TCG) has none, and KVM runs no guest here: {TCG.why}",),
    )
    monkeypatch.setattr(f"{MODULE}.MACHINE", SimpleNamespace(why_not=lambda _: "virtual machines need QEMU"))
    assert machine_events(host, host, Layout(Path("/home/t")))[1] == ("VM exit: virtual machines need QEMU",)


def test_without_kvm_no_kernel_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: Any) -> None:
        raise AssertionError("a kernel was fetched for nothing")

    monkeypatch.setattr(f"{MODULE}.MACHINE", SimpleNamespace(why_not=lambda _: None))
    monkeypatch.setattr(f"{MODULE}.kernel_of", fetched)
    answers: dict[tuple[str, ...], Any] = {
        (QEMU, "--version"): Completed((), 0, b"QEMU emulator version 7.2.22\n"),
        ("test", "-c", "/dev/kvm"): Completed((), 1),
    }
    events, (lack,) = machine_events(FakeHost(answers=answers), UntouchableLedger(), Layout(Path("/home/t")))
    assert events == ()
    assert lack.endswith("KVM runs no guest here: there is no /dev/kvm")


def test_a_kernel_that_does_not_come_in_time_is_not_blamed_on_a_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> None:
        raise TimedOut("apt-get download did not end within 900 s")

    monkeypatch.setattr(f"{MODULE}.MACHINE", SimpleNamespace(why_not=lambda _: None))
    monkeypatch.setattr(f"{MODULE}.verdict_without_trial", lambda *_: None)
    monkeypatch.setattr(f"{MODULE}.kernel_of", slow)
    _, lacks = machine_events(FakeHost(), UntouchableLedger(), Layout(Path("/home/t")))
    assert lacks == ("VM exit: apt-get download did not end within 900 s",)


def test_a_guest_that_hangs_ends_even_where_tare_was_killed() -> None:
    for argv, waited_s in ((trial_argv, TRIAL_S), (exits_argv, EXITS_S)):
        program, kill, limit_s, started, *_ = argv(Accelerator.KVM, "/k", "/i")
        assert (program, kill, started) == ("timeout", "--signal=KILL", QEMU)
        assert waited_s < float(limit_s) <= waited_s + 15


@pytest.mark.parametrize("accelerator", list(Accelerator))
def test_the_guest_is_the_trial_s_machine_asked_for_something_else(accelerator: Accelerator) -> None:
    started = (argv(accelerator, "/k", "/i") for argv in (trial_argv, exits_argv))
    trial, exits = (argv[argv.index(QEMU) :] for argv in started)
    assert [(a, b) for a, b in zip(trial, exits, strict=True) if a != b] == [
        (boot, boot.replace("tare.trial", "tare.exits")) for boot in trial if "tare.trial" in boot
    ]
