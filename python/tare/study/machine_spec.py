"""How a study sets up a virtual machine."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from tare.study.values import Strict


class VmSpec(Strict):
    """Of `deployment: vm` and `vm-container`: how QEMU is to give the machine its disks and CPUs."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cache: Literal["none", "writeback", "writethrough", "directsync", "unsafe"] = "none"
    """Of the disks with data, in QEMU's words: `none` goes past the host's page cache."""
    aio: Literal["threads", "native", "io_uring"] = "threads"
    """By which of the host's interfaces QEMU reads and writes them."""
    disk: str = Field(default="16G", pattern=r"^[1-9]\d*[KMG]?$")
    """Size of each: bytes, or with K, M, G. A file with holes, so that only what is written takes room."""
    pin: bool = False
    """Each virtual CPU on one CPU of `limits.cpus`, in order; else on any of them."""
