"""Parameters of fio in a study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tare.study.values import Count, size_bytes
from tare.workloads import Parameters
from tare.workloads.sysbench.fileio import Size

_SECTOR = 512
_SYNCHRONOUS = frozenset({"psync", "mmap"})
_WRITING = frozenset({"write", "randwrite", "rw", "randrw"})


class FioParameters(Parameters):
    """Options of fio 3.33 by fio's names; tare passes all of them explicitly.

    `size`: of each job's file, as in fio. `fsync`, `fdatasync`: number of requests between two calls, 0: never.
    """

    rw: Literal["read", "write", "rw", "randread", "randwrite", "randrw"]
    bs: Size = "16K"
    size: Size = "64M"
    numjobs: int = Field(default=1, ge=1, le=256)
    ioengine: Literal["psync", "libaio", "mmap"] = "psync"
    iodepth: Count = Field(default=1, ge=1)
    direct: bool = False
    fsync: Count = Field(default=0, ge=0)
    fdatasync: Count = Field(default=0, ge=0)
    rwmixread: int = Field(default=50, ge=0, le=100)
    norandommap: bool = False
    seed: int | None = Field(default=None, ge=1, le=2**31 - 1)

    @property
    def bs_bytes(self) -> int:
        """Bytes of one request."""
        return size_bytes(self.bs)

    @property
    def size_bytes(self) -> int:
        """Bytes of the file of one job."""
        return size_bytes(self.size)

    @property
    def syncs(self) -> bool:
        """Whether fio syncs its files while it runs."""
        return self.fsync > 0 or self.fdatasync > 0

    @property
    def waits_for_disk(self) -> str | None:
        """Always: fio measures the disk."""
        return "fio only uses the disk"

    @model_validator(mode="after")
    def _fits(self) -> FioParameters:
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if self.size_bytes % self.bs_bytes:
            raise ValueError("size is not a multiple of bs")
        if self.direct and self.bs_bytes % _SECTOR:
            raise ValueError(f"O_DIRECT takes blocks of whole sectors ({_SECTOR} bytes)")
        if self.direct and self.ioengine == "mmap":
            raise ValueError("mmap always goes through the page cache, whatever flags the file is opened with")
        if self.iodepth > 1 and self.ioengine in _SYNCHRONOUS:
            raise ValueError(f"{self.ioengine} keeps one request in flight, whatever iodepth says")
        if self.ioengine == "libaio" and not self.direct:
            raise ValueError("libaio without direct waits in the submission, so iodepth would have no effect")
        if self.syncs and self.rw not in _WRITING:
            raise ValueError(f"{self.rw} writes nothing for fsync or fdatasync to make durable")
        if self.fsync and self.fdatasync:
            raise ValueError("fio counts fsync and fdatasync as one kind, so name one of them")
        return self
