"""Checks that need a trial: rights, programs, /dev/kvm, noise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tare.deployments.vm.accelerator import cached_accelerator
from tare.doctor import Line, cannot, ok, warning
from tare.errors import RunFailed, TimedOut
from tare.images.recipe.debian_root import why_no_build
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.reading import answer
from tare.storage.nfs.client import why_no_nfs

_SPIN = Path(__file__).with_name("spin.py")
_SPIN_S = 1.5
_PAUSE_US = 100
_MOST_LOST = 0.01
"""Share of the loop's time that may be lost before results of this machine need many more blocks."""
_LIMIT_S = 10.0
_OPEN_KVM = "import os; os.close(os.open('/dev/kvm', os.O_RDWR | os.O_CLOEXEC))"


def trial_lines(host: Host, layout: Layout, rights: Line, *, builds: bool) -> Iterator[Line]:
    """Lines of trials; takes about two seconds and keeps one CPU busy. `rights`: result of an earlier check.

    `builds`: whether images are built here; hosts other than tare's own get finished images.
    """
    yield rights
    if builds:
        yield _image_builder(host)
    yield _kvm(host, layout)
    yield _nfs(host)
    yield _noise(host)


def _image_builder(host: Host) -> Line:
    words = answer(host, ["mmdebstrap", "--version"]).split()
    if not words:
        return cannot("mmdebstrap", "not installed", "images are built with it: apt-get install mmdebstrap")
    if (why := why_no_build(host)) is not None:
        return warning("mmdebstrap", f"{words[-1]}, but this user cannot use it", why)
    return ok("mmdebstrap", words[-1])


def _kvm(host: Host, layout: Layout) -> Line:
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


def _nfs(host: Host) -> Line:
    why = why_no_nfs(host)
    if why is None:
        return ok("NFS", "server and client are here")
    return warning("NFS", why, "only needed by arms on the storage `nfs`")


def _noise(host: Host) -> Line:
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
