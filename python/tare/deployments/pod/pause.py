"""The program that holds a pod's namespaces, and its image: it sleeps until it is killed.

Hand-assembled, as it has 15 instructions at most: a pod then needs no image from anywhere. Unlike Kubernetes'
pause, it reaps nothing, since no pod here shares its process namespace, and it ends by SIGKILL only, as tare ends
it.
"""

from __future__ import annotations

import struct

from tare.deployments.container.once import tree
from tare.errors import EnvironmentLacks

PATH = "/pause"
_BASE = 0x40_0000
_HEADERS = 64 + 56
_CODE = {
    # pause(), for ever: mov eax, 34; syscall; jmp to the mov (arch/x86/entry/syscalls/syscall_64.tbl)
    "x86_64": (62, bytes.fromhex("b822000000" + "0f05" + "ebf7")),
    # ppoll(NULL, 0, NULL, NULL, 0), for ever (include/uapi/asm-generic/unistd.h):
    # mov x0..x4, #0; mov x8, #73; svc #0; b to the first mov
    "aarch64": (
        183,
        struct.pack("<8I", *(0xD2800000 + register for register in range(5)), 0xD2800928, 0xD4000001, 0x17FFFFF9),
    ),
}
"""Machine → its number in elf(5), and its instructions."""


def pause_program(machine: str) -> bytes:
    """A static ELF executable for a machine as `uname -m` names it.

    Raises `EnvironmentLacks` for other machines.
    """
    if machine not in _CODE:
        raise EnvironmentLacks(
            f"pods are made on {' and '.join(_CODE)}, and this host is {machine}",
            hint="use a container without `pod`",
        )
    return executable(*_CODE[machine])


def executable(number: int, code: bytes) -> bytes:
    """A static ELF executable with only these instructions, for the machine with this number in elf(5)."""
    size = _HEADERS + len(code)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, number, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return header + segment + code


def pause_image(machine: str) -> bytes:
    """A tar of a root file system that holds only the program."""
    return tree({PATH: pause_program(machine)}, 0o755)
