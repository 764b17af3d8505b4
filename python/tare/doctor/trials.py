"""Checks that need a trial: the builder of images, /dev/kvm, noise."""

from __future__ import annotations

import json
from pathlib import Path

from tare.deployments.vm.accelerator import cached_accelerator
from tare.doctor import Line, cannot, missing, ok, warning
from tare.errors import RunFailed, TimedOut
from tare.images.recipe.debian_root import why_no_build
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.reading import answer

_SPIN = Path(__file__).with_name("spin.py")
_SPIN_S = 1.5
_PAUSE_US = 100
_MOST_LOST = 0.01
"""Share of the loop's time that may be lost before results of this machine need many more blocks."""
_LIMIT_S = 10.0
_OPEN_KVM = "import os; os.close(os.open('/dev/kvm', os.O_RDWR | os.O_CLOEXEC))"


def builder_line(host: Host) -> Line:
    """Whether images can be built here."""
    words = answer(host, ["mmdebstrap", "--version"]).split()
    if not words:
        return cannot("mmdebstrap", "not installed", "images are built with it: apt-get install mmdebstrap")
    if (why := why_no_build(host)) is not None:
        return missing("mmdebstrap", f"{words[-1]}, but this user cannot use it", why)
    return ok("mmdebstrap", words[-1])


def kvm_line(host: Host, layout: Layout) -> Line:
    """Check KVM. If /dev/kvm opens, machines may still not start: with nested virtualisation they may hang.

    Whether one can start is known if a study has had an arm in a machine since boot.
    """
    emulated = "VM arms are emulated, and marked so; enable virtualisation for hardware speed"
    try:
        done = host.run(["python3", "-I", "-c", _OPEN_KVM], timeout_s=_LIMIT_S, check=False)
    except TimedOut:
        return warning("KVM", f"/dev/kvm does not open within {_LIMIT_S:g} s", emulated)
    except RunFailed as error:
        return warning("KVM", f"cannot be tried: {error}", "install python3")
    if done.code == 0:
        tried = cached_accelerator(host, layout)
        if tried is None:
            return ok("KVM", "/dev/kvm opens; no machine was started to try it")
        return ok("KVM", "a machine ran under it") if tried.why is None else warning("KVM", tried.why, emulated)
    reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return warning("KVM", reason or "/dev/kvm does not open", emulated)


def noise_line(host: Host) -> Line:
    """Keep a CPU busy for some seconds, and say how much of its time was lost."""
    argv = ["python3", "-I", "-", str(_SPIN_S), str(_PAUSE_US)]
    try:
        result = json.loads(host.run(argv, timeout_s=_SPIN_S + _LIMIT_S, stdin=_SPIN.read_bytes()).text)
        lost = result["lost_s"] / result["seconds"]
        observed = (
            f"a busy loop of {result['seconds']:.1f} s lost {lost:.2%} of its time in {result['pauses']} pauses "
            f"over {_PAUSE_US / 1000:g} ms, the longest {result['longest_ms']:.2f} ms"
        )
    except (RunFailed, ValueError, KeyError, ZeroDivisionError) as error:
        return warning("noise", f"cannot be measured: {error}", "install python3")
    if lost > _MOST_LOST:
        return warning(
            "noise", observed, "other load, interrupts or a busy hypervisor: reduce it, or plan more blocks"
        )
    return ok("noise", observed)
