"""sysbench's `fileio`: reads, writes and fsyncs on prepared files. A SUT without a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from tare.errors import RunFailed
from tare.study.values import Count
from tare.workloads import ClientCommand, Files, Measurement, Parameters, Window
from tare.workloads.sysbench.builtin import Form, Report, call, measurement_of, prepare, report_of
from tare.workloads.sysbench.parameters import WholeSeconds

Size = Annotated[str, Field(pattern=r"^[1-9]\d*[KMG]?$")]
"""Size in bytes, or with K, M or G (powers of 1024)."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SECTOR = 512


_N = r"(\d+(?:\.\d+)?)"
_WINDOW = re.compile(rf"\[ (\d+)s \] reads: {_N} MiB/s writes: {_N} MiB/s fsyncs: {_N}/s latency \(ms,95%\): {_N}")
_FIGURES = {
    "reads_per_s": re.compile(rf"    reads/s: +{_N}"),
    "writes_per_s": re.compile(rf"    writes/s: +{_N}"),
    "fsyncs_per_s": re.compile(rf"    fsyncs/s: +{_N}"),
    "read_mib_per_s": re.compile(rf"    read, MiB/s: +{_N}"),
    "written_mib_per_s": re.compile(rf"    written, MiB/s: +{_N}"),
}
_MIB = 1 << 20
_AGREEMENT = 0.02
"""Relative tolerance: sysbench divides its rates by a slightly later time, by 0.05 % in 3 s on a busy machine."""
_PREPARE_BASE_S, _PREPARE_BYTES_PER_S = 300.0, 2e6
"""A slower prepare counts as dead."""
_DIRECT = "direct"


class SysbenchFileioParameters(Parameters):
    """Options of sysbench 1.0.20 by sysbench's names, with its defaults; tare passes all of them explicitly.

    `file_extra_flags`: at most one flag, as sysbench 1.0.20 rejects two ("Unknown extra flags value").
    `file_test_mode` has no `seqwr`, as that test makes its own files.
    """

    file_test_mode: Literal["rndrw", "rndrd", "rndwr", "seqrd", "seqrewr"]
    file_num: Count = Field(default=128, ge=1)
    file_total_size: Size = "2G"
    file_block_size: Size = "16K"
    file_io_mode: Literal["sync", "async", "mmap"] = "sync"
    file_async_backlog: Count = Field(default=128, ge=1)
    file_extra_flags: Literal["", "sync", "dsync", "direct"] = ""
    file_fsync_freq: Count = Field(default=100, ge=0)
    file_fsync_all: bool = False
    file_fsync_end: bool = True
    file_fsync_mode: Literal["fsync", "fdatasync"] = "fsync"
    file_rw_ratio: float = Field(default=1.5, gt=0.0, le=1e6)
    threads: int = Field(default=1, ge=1, le=100_000)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)
    seed: int | None = Field(default=None, ge=1, le=2**31 - 1)

    @property
    def total_bytes(self) -> int:
        """Bytes of all files together."""
        return _bytes(self.file_total_size)

    @property
    def block_bytes(self) -> int:
        """Bytes of one request."""
        return _bytes(self.file_block_size)

    @property
    def waits_for_disk(self) -> str | None:
        """Always: fileio measures the disk."""
        return "fileio only uses the disk"

    @model_validator(mode="after")
    def _fits(self) -> SysbenchFileioParameters:
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if self.total_bytes % (self.file_num * self.block_bytes):
            raise ValueError("file_total_size is not a multiple of file_num times file_block_size")
        if self.file_extra_flags == "direct" and self.block_bytes % _SECTOR:
            raise ValueError(f"O_DIRECT takes blocks of whole sectors ({_SECTOR} bytes)")
        if self.file_extra_flags == "direct" and self.file_io_mode == "mmap":
            raise ValueError("mmap always goes through the page cache, whatever flags the file is opened with")
        return self


def _bytes(size: str) -> int:
    return int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)


class SysbenchFileio:
    """Describes calls of `sysbench fileio` and parses its output."""

    parameters: ClassVar[type[Parameters]] = SysbenchFileioParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Number and size of the files; how they are read and written later does not matter."""
        own = _own(parameters)
        return {"file_num": own.file_num, "bytes": own.total_bytes}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Make the files and fsync each; with O_DIRECT, so that they do not fill the page cache."""
        own = _own(parameters)
        timeout_s = _PREPARE_BASE_S + own.total_bytes / _PREPARE_BYTES_PER_S
        options = (*_files(own), "--file-block-size=1048576", f"--file-extra-flags={_DIRECT}")
        if own.total_bytes // own.file_num % _MIB:
            options = (*_files(own), f"--file-block-size={own.block_bytes}")
        return prepare("fileio", options, timeout_s=timeout_s, workdir=target.path)

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """Run the same mix on the same files in a separate process, with another seed so that offsets differ."""
        own = _own(parameters)
        if own.warmup_s == 0:
            return None
        seed = None if own.seed is None else own.seed % (2**31 - 1) + 1
        return _run(own.model_copy(update={"seed": seed}), target, own.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Read and write for `measure_s`; sysbench reports each window, and a histogram at the end."""
        own = _own(parameters)
        return _run(own, target, own.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse a measure phase. Raises `RunFailed` unless the output is complete and consistent."""
        own = _own(parameters)
        form = Form("requests", _window_of(own), _FIGURES)
        report = report_of(own, form, stdout, stderr, code)
        _must_add_up(report, own)
        return measurement_of(report, form, {name: report.figure(name) for name in _FIGURES})


def _own(parameters: Parameters) -> SysbenchFileioParameters:
    if not isinstance(parameters, SysbenchFileioParameters):
        raise TypeError(f"not the parameters of sysbench fileio: {parameters!r}")
    return parameters


def _files(own: SysbenchFileioParameters) -> tuple[str, ...]:
    return (f"--file-num={own.file_num}", f"--file-total-size={own.total_bytes}", "--file-test-mode=rndrw")


def _run(own: SysbenchFileioParameters, target: Files, seconds: float) -> ClientCommand:
    options = (
        f"--threads={own.threads}",
        f"--report-interval={own.window_s:.0f}",
        f"--rand-seed={own.seed or 0}",
        f"--file-num={own.file_num}",
        f"--file-total-size={own.total_bytes}",
        f"--file-block-size={own.block_bytes}",
        f"--file-test-mode={own.file_test_mode}",
        f"--file-io-mode={own.file_io_mode}",
        f"--file-async-backlog={own.file_async_backlog}",
        f"--file-extra-flags={own.file_extra_flags}",
        f"--file-fsync-freq={own.file_fsync_freq}",
        f"--file-fsync-all={'on' if own.file_fsync_all else 'off'}",
        f"--file-fsync-end={'on' if own.file_fsync_end else 'off'}",
        f"--file-fsync-mode={own.file_fsync_mode}",
        "--file-merged-requests=0",
        f"--file-rw-ratio={own.file_rw_ratio:g}",
    )
    return call("fileio", options, seconds=seconds, workdir=target.path)


def _window_of(own: SysbenchFileioParameters) -> Callable[[str], Window | None]:
    """Make the parser of a window. Lines have MiB and fsyncs per second; requests follow from the block size."""
    per_mib = _MIB / own.block_bytes

    def window(line: str) -> Window | None:
        match = _WINDOW.fullmatch(line)
        if match is None:
            return None
        end_s, read, written, fsyncs, p95 = (float(figure) for figure in match.groups())
        rate = (read + written) * per_mib + (0.0 if own.file_fsync_all else fsyncs)
        return Window(end_s, rate, p95 if rate > 0 else None, errors_per_s=0.0, reconnects_per_s=0.0)

    return window


def _must_add_up(report: Report, own: SysbenchFileioParameters) -> None:
    """Raise `RunFailed` unless reads, writes and periodic fsyncs add up to the events.

    An fsync after each write is part of that write's event.
    """
    rates = sum(report.figure(name) for name in ("reads_per_s", "writes_per_s"))
    rates += 0.0 if own.file_fsync_all else report.figure("fsyncs_per_s")
    requests, events = rates * report.figure("total_time_s"), report.figure("events")
    if abs(requests - events) > max(_AGREEMENT * events, 2.0):
        raise RunFailed(
            f"sysbench's report contradicts itself: {requests:.0f} requests by rate, but {events:.0f} events"
        )
