"""Whether this host can run virtual machines, and whether KVM really runs a guest, determined by a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tare.deployments.vm.command import QEMU, TRIAL_S, Accelerator, trial_argv
from tare.deployments.vm.kernel import Kernel
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.sites.binaries import GUEST, find
from tare.sites.layout import Layout
from tare.sites.process import boot_id

_CALL_S = 30.0
_DISK_TOOLS = ("mke2fs", "debugfs")


_KVM_CALL_S = 60.0
_AGAIN_AFTER_S = 3600.0
"""A machine that did not boot in time may have waited for a busy host, so the trial is repeated after this time."""
_SIGN = "tare-guest: trial: run by KVMKVMKVM"
"""KVM's CPUID signature (Documentation/virt/kvm/x86/cpuid.rst), read by a program in the guest."""
_HINT = "apt-get install qemu-system-x86"


def _lacks(there: HostPlan) -> Iterator[Lack]:
    try:
        qemu_version(there.host)
    except EnvironmentLacks as error:
        yield Lack(str(error))
        return
    for program in _DISK_TOOLS:
        try:
            there.host.run([program, "-V"], timeout_s=_CALL_S, check=False)
        except RunFailed as error:
            yield Lack(f"their disks are made by {program}: {error.what} (apt-get install e2fsprogs)")
            return
    if not find(there.host, GUEST):
        yield Lack("tare-guest, which every machine runs, is missing", GUEST.hint)


MACHINE = Requirement(
    "virtual machines",
    needed_by="arms with `deployment: vm` or `vm-container`",
    tried_how="the versions of QEMU, mke2fs, debugfs and tare-guest",
    hint=_HINT,
    ask=_lacks,
)


@dataclass(frozen=True)
class Verdict:
    """An accelerator. `why`: for TCG, the reason why KVM is not used."""

    accelerator: Accelerator
    why: str | None


def accelerator_of(host: Host, layout: Layout, kernel: Kernel) -> Verdict:
    """Return the result of an earlier trial since boot with this QEMU; run a trial if there is none."""
    if (known := verdict_without_trial(host, layout)) is not None:
        return known
    mark, path, now_s = _mark(host), _path(layout), _uptime_s(host)
    verdict, lasting = _try(host, kernel)
    until = None if lasting else now_s + _AGAIN_AFTER_S
    kept = {"mark": mark, "accelerator": verdict.accelerator.value, "why": verdict.why, "until_uptime_s": until}
    host.put(json.dumps(kept).encode(), path)
    return verdict


def verdict_without_trial(host: Host, layout: Layout) -> Verdict | None:
    """What is known before a trial, which needs a kernel: no KVM device, or an earlier trial's result."""
    mark = _mark(host)
    if host.run(["test", "-c", "/dev/kvm"], timeout_s=_KVM_CALL_S, check=False).code != 0:
        return Verdict(Accelerator.TCG, "there is no /dev/kvm")  # not kept: its module may be loaded later
    return _known(host.read(_path(layout)), mark, _uptime_s(host))


def cached_accelerator(host: Host, layout: Layout) -> Verdict | None:
    """Result of an earlier trial that still holds; `None` if there is none or it cannot be read."""
    try:
        return _known(host.read(_path(layout)), _mark(host), _uptime_s(host))
    except (EnvironmentLacks, RunFailed):
        return None


def qemu_version(host: Host) -> str:
    """First line of QEMU's version. Raises `EnvironmentLacks` if there is no QEMU."""
    try:
        done = host.run([QEMU, "--version"], timeout_s=_KVM_CALL_S)
    except TimedOut as error:
        raise EnvironmentLacks(f"{QEMU} does not even report its version: {error.what}") from error
    except RunFailed as error:
        raise EnvironmentLacks(f"virtual machines need QEMU: {error.what}", hint=_HINT) from error
    return done.text.splitlines()[0] if done.text else ""


def _path(layout: Layout) -> str:
    return f"{layout.machines}/accelerator.json"


def _mark(host: Host) -> str:
    return f"{boot_id(host)} {qemu_version(host)}"


def _uptime_s(host: Host) -> float:
    return float((host.read("/proc/uptime") or b"0").split()[0])


def _known(raw: bytes | None, mark: str, now_s: float) -> Verdict | None:
    try:
        kept = json.loads(raw or b"{}")
        if kept.get("mark") != mark:
            return None
        until = kept["until_uptime_s"]
        return Verdict(Accelerator(kept["accelerator"]), kept["why"]) if until is None or now_s < until else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _try(host: Host, kernel: Kernel) -> tuple[Verdict, bool]:
    """Run a trial; return the verdict and whether it holds until the next boot."""
    try:
        done = host.run(trial_argv(Accelerator.KVM, kernel.image, kernel.initramfs), timeout_s=TRIAL_S, check=False)
    except TimedOut:
        return Verdict(Accelerator.TCG, f"a guest under KVM printed nothing within {TRIAL_S:g} s"), False
    if _SIGN in done.text:
        return Verdict(Accelerator.KVM, None), True
    words = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
    return Verdict(Accelerator.TCG, f"no guest could run under KVM: {words[-1] if words else done.code}"), True
