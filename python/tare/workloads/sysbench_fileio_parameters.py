"""What a study may say of sysbench's file I/O."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tare.workloads import Parameters
from tare.workloads.sysbench_parameters import WholeSeconds

Size = Annotated[str, Field(pattern=r"^[1-9]\d*[KMG]?$")]
"""Bytes, or with K, M, G (powers of 1024)."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SECTOR = 512


class SysbenchFileioParameters(Parameters):
    """Options of sysbench 1.0.20 by its own names, with its own defaults; all are passed on explicitly.

    `file_extra_flags`: one flag or none, since sysbench 1.0.20 takes no two of them ("Unknown extra flags value").
    `file_test_mode` has no `seqwr`, whose files are made by the test itself.
    """

    file_test_mode: Literal["rndrw", "rndrd", "rndwr", "seqrd", "seqrewr"]
    file_num: int = Field(default=128, ge=1)
    file_total_size: Size = "2G"
    file_block_size: Size = "16K"
    file_io_mode: Literal["sync", "async", "mmap"] = "sync"
    file_async_backlog: int = Field(default=128, ge=1)
    file_extra_flags: Literal["", "sync", "dsync", "direct"] = ""
    file_fsync_freq: int = Field(default=100, ge=0)
    file_fsync_all: bool = False
    file_fsync_end: bool = True
    file_fsync_mode: Literal["fsync", "fdatasync"] = "fsync"
    file_rw_ratio: float = Field(default=1.5, gt=0.0)
    threads: int = Field(default=1, ge=1)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)
    seed: int | None = Field(default=None, ge=1, le=2**31 - 1)

    @property
    def total_bytes(self) -> int:
        """Of all files."""
        return _bytes(self.file_total_size)

    @property
    def block_bytes(self) -> int:
        """Of a request."""
        return _bytes(self.file_block_size)

    @property
    def waits_for_disk(self) -> str | None:
        """It is what it measures."""
        return "fileio is work for the disk and nothing else"

    @model_validator(mode="after")
    def _fits(self) -> SysbenchFileioParameters:
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if self.total_bytes % (self.file_num * self.block_bytes):
            raise ValueError("file_total_size is not a multiple of file_num times file_block_size")
        if self.file_extra_flags == "direct" and self.block_bytes % _SECTOR:
            raise ValueError(f"O_DIRECT takes blocks of whole sectors ({_SECTOR} bytes)")
        if self.file_extra_flags == "direct" and self.file_io_mode == "mmap":
            raise ValueError("mmap goes through the page cache, whatever flags a file was opened with")
        return self


def _bytes(size: str) -> int:
    return int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
