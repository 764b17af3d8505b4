"""The first program of a pod's container: it waits until the node's side is ready, then becomes the task's program.

kubelet starts a container and reports it a second later. By then a server would have read its limits and taken its
memory before tare could set what a study asks for. Hand-assembled, as it must run in any image, without a library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.deployments.defaults import PATH
from tare.deployments.pod.pause import executable
from tare.errors import EnvironmentLacks

DIRECTORY = "/.tare"
"""Path of the gate in the container; a directory of the node."""
PROGRAM, FIFO = "gate", "open"
NO_PROGRAM = 127
"""Exit code if the FIFO or the task's program cannot be opened, as a shell's."""
_X86_64 = 62
_CODE = {
    # open(argv[1], O_RDONLY); read one byte of it; close; execve each of argv[2..] up to the first empty one, with
    # what stands behind that one as arguments; exit_group(127) (arch/x86/entry/syscalls/syscall_64.tbl).
    "x86_64": (
        _X86_64,
        bytes.fromhex(
            "4889e3488b034c8d74c310488b7b1031f631d2b8020000000f0585c0784b89c7504889e6ba0100000031c00f0583f8017537"
            "b8030000000f054c8d63184d89e5498b45004983c50880380075f3498b3c244983c408803f00740f4c89ee4c89f2b83b0000"
            "000f05ebe4bf7f000000b8e70000000f05"
        ),
    )
}


def gate_program(machine: str) -> bytes:
    """A static ELF executable for a machine as `uname -m` names it.

    Raises `EnvironmentLacks` for other machines.
    """
    if machine not in _CODE:
        raise EnvironmentLacks(
            f"pods of a cluster are started on {' and '.join(_CODE)}, and this node is {machine}",
            hint="use a container, or a container with `sut.pod`",
        )
    return executable(*_CODE[machine])


def gated(argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Command of the container: the gate, its FIFO, possible paths of the program (execvp(3)), the task's argv."""
    name = argv[0]
    folders = [folder for folder in env.get("PATH", PATH).split(":") if folder]
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in folders]
    return (f"{DIRECTORY}/{PROGRAM}", f"{DIRECTORY}/{FIFO}", *places, "", *argv)
