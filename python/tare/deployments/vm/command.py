"""QEMU's command line for one virtual machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

QEMU = "qemu-system-x86_64"
_BOOT = "console=ttyS0 panic=-1 oops=panic quiet cryptomgr.notests random.trust_cpu=on"
_TCG_CACHE_MIB = 256
TRIAL_S, EXITS_S = 20.0, 30.0
"""How long the caller waits for a machine that prints something and ends."""
_SPARE_S = 10.0


class Accelerator(StrEnum):
    """The component that executes a machine's instructions."""

    KVM = "kvm"
    TCG = "tcg"
    """Emulation by QEMU itself: correct, many times slower, and no measure of virtualisation."""


@dataclass(frozen=True)
class Disk:
    """A file as a disk, which the guest finds by `serial`. `cache`, `aio`: QEMU's options (qemu(1), -drive).

    A read or write error of the host is an error in the guest; by default QEMU would stop a machine whose host is
    full.
    """

    path: str
    serial: str
    target: str
    read_only: bool
    cache: str
    aio: str


@dataclass(frozen=True)
class Hardware:
    """Hardware of the machine. `cpus`: number of virtual CPUs; `memory_bytes`: its whole memory."""

    accelerator: Accelerator
    cpus: int
    memory_bytes: int
    disks: tuple[Disk, ...]
    netdev: str
    mac: str


@dataclass(frozen=True)
class Wiring:
    """Paths on the host: kernel and initial file system.

    FIFOs, socket and files that the machine's ports lead to.
    """

    kernel: str
    initramfs: str
    line: str
    monitor: str
    console: str
    stdout: str
    stderr: str
    status: str
    counters: str


def machine_argv(accelerator: Accelerator) -> tuple[str, ...]:
    """Arguments that a trial and a real machine share."""
    model = "host" if accelerator is Accelerator.KVM else "max"
    accel = accelerator.value if accelerator is Accelerator.KVM else f"tcg,tb-size={_TCG_CACHE_MIB}"
    return (
        *(QEMU, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-machine", "q35,usb=off,vmport=off", "-accel", accel, "-cpu", model),
    )


def trial_argv(accelerator: Accelerator, kernel: str, initramfs: str) -> tuple[str, ...]:
    """A machine that prints on its console what runs it, and ends."""
    return _printing(accelerator, kernel, initramfs, "tare.trial", TRIAL_S)


def exits_argv(accelerator: Accelerator, kernel: str, initramfs: str) -> tuple[str, ...]:
    """A machine that prints on its console what a VM exit takes, and ends."""
    return _printing(accelerator, kernel, initramfs, "tare.exits", EXITS_S)


def _printing(
    accelerator: Accelerator, kernel: str, initramfs: str, asked: str, waited_s: float
) -> tuple[str, ...]:
    """By timeout(1), which ends a machine that hangs even where tare itself was killed: no ledger names it."""
    return (
        *("timeout", "--signal=KILL", f"{waited_s + _SPARE_S:g}"),
        *machine_argv(accelerator),
        *("-m", "256M", "-kernel", kernel, "-initrd", initramfs, "-append", f"{_BOOT} {asked}"),
        *("-serial", "stdio"),
    )


def qemu_argv(name: str, hardware: Hardware, wiring: Wiring) -> tuple[str, ...]:
    """A machine with its disks, network card and ports."""
    return (
        *machine_argv(hardware.accelerator),
        *("-name", f"{name},debug-threads=on"),
        *("-smp", str(hardware.cpus), "-m", f"{hardware.memory_bytes >> 20}M"),
        *("-kernel", wiring.kernel, "-initrd", wiring.initramfs, "-append", _BOOT),
        *("-chardev", f"file,id=console,path={escaped(wiring.console)}", "-serial", "chardev:console"),
        *("-qmp", f"unix:{escaped(wiring.monitor)},server=on,wait=off"),
        *(word for disk in hardware.disks for word in _disk(disk)),
        *("-netdev", hardware.netdev, "-device", f"virtio-net-pci,netdev=net,mac={hardware.mac},romfile="),
        *("-device", "virtio-serial-pci,max_ports=8"),
        *_port("line", f"pipe,id=line,path={escaped(wiring.line)}"),
        *_port("stdout", f"file,id=stdout,append=on,path={escaped(wiring.stdout)}"),
        *_port("stderr", f"file,id=stderr,append=on,path={escaped(wiring.stderr)}"),
        *_port("status", f"file,id=status,path={escaped(wiring.status)}"),
        *_port("counters", f"file,id=counters,path={escaped(wiring.counters)}"),
    )


def escaped(path: str) -> str:
    """Escape a path for QEMU's option lists, in which a comma is written twice."""
    return path.replace(",", ",,")


def _disk(disk: Disk) -> Sequence[str]:
    read_only = "on" if disk.read_only else "off"
    drive = f"if=none,id={disk.serial},format=raw,readonly={read_only},cache={disk.cache},aio={disk.aio}"
    device = f"virtio-blk-pci,drive={disk.serial},serial={disk.serial},werror=report,rerror=report"
    return ("-drive", f"{drive},file={escaped(disk.path)}", "-device", device)


def _port(name: str, chardev: str) -> Sequence[str]:
    return ("-chardev", chardev, "-device", f"virtserialport,chardev={name},name=tare.{name}")
