"""fio: reads, writes and fsyncs over files that were made before, one file a job. A SUT without a database.

docs/reference/workloads/fio.md says what is counted, and when the page cache is measured and not a disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.workloads import ClientCommand, Files, Measurement, Parameters, output_path
from tare.workloads.fio.measurement import measurement
from tare.workloads.fio.parameters import FioParameters

_ENV: Mapping[str, str] = {"LC_ALL": "C"}
_LOG = "fio"
_FILES = "--filename_format=data.$jobnum"
_MARGIN_S = 60.0
_LOAD_BASE_S, _LOAD_BYTES_PER_S = 300.0, 2e6
"""A load slower than this is taken for dead."""
_MIB = 1 << 20


class Fio:
    """Describes calls of fio, and reads what it prints."""

    parameters: ClassVar[type[Parameters]] = FioParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """How many files, and their size: by what they are read and written afterwards does not matter."""
        own = _own(parameters)
        return {"numjobs": own.numjobs, "bytes": own.size_bytes}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Write every byte of every file: fio's own layout would leave files that are only written unwritten."""
        own = _own(parameters)
        bs = _MIB if own.size_bytes % _MIB == 0 else own.bs_bytes
        argv = _fio(own, "--rw=write", f"--bs={bs}", "--end_fsync=1")
        timeout_s = _LOAD_BASE_S + own.numjobs * own.size_bytes / _LOAD_BYTES_PER_S
        return ClientCommand(argv, _ENV, {}, timeout_s=timeout_s, workdir=target.path)

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """The same mix over the same files in a process of its own; with another seed, lest offsets repeat."""
        own = _own(parameters)
        if own.warmup_s == 0:
            return None
        seed = None if own.seed is None else own.seed % (2**31 - 1) + 1
        return _run(own.model_copy(update={"seed": seed}), target, own.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:
        """Read and write for `measure_s`, with a log of each job's windows."""
        own = _own(parameters)
        windows = (f"--write_iops_log={run_dir}/{_LOG}", f"--log_avg_msec={own.window_s * 1000:.0f}")
        return _run(own, target, own.measure_s, windows, output_files=_logs(own))

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read a measure phase; `RunFailed` unless all of it is there and agrees."""
        own = _own(parameters)
        return measurement(own, stdout, stderr, [output_path(stdout, name) for name in _logs(own)], code)


def _own(parameters: Parameters) -> FioParameters:
    if not isinstance(parameters, FioParameters):
        raise TypeError(f"not the parameters of fio: {parameters!r}")
    return parameters


def _logs(own: FioParameters) -> tuple[str, ...]:
    """As fio names them, a file a job."""
    return tuple(f"{_LOG}_iops.{job}.log" for job in range(1, own.numjobs + 1))


def _fio(own: FioParameters, *options: str) -> tuple[str, ...]:
    """Jobs are threads, so that they end with the process whose death is seen."""
    return (
        "fio", "--name=tare", "--thread", _FILES, f"--numjobs={own.numjobs}", f"--size={own.size_bytes}",
        "--fallocate=none", "--eta=never", "--output-format=json+", *options,
    )  # fmt: skip


def _run(
    own: FioParameters,
    target: Files,
    seconds: float,
    windows: tuple[str, ...] = (),
    output_files: tuple[str, ...] = (),
) -> ClientCommand:
    options = (
        f"--rw={own.rw}",
        f"--bs={own.bs_bytes}",
        f"--ioengine={own.ioengine}",
        f"--iodepth={own.iodepth}",
        f"--direct={int(own.direct)}",
        f"--fsync={own.fsync}",
        f"--fdatasync={own.fdatasync}",
        f"--rwmixread={own.rwmixread}",
        f"--norandommap={int(own.norandommap)}",
        "--time_based",
        f"--runtime={seconds * 1000:.0f}ms",
        "--allow_file_create=0",
        "--invalidate=0",
        "--randrepeat=0",
        *(() if own.seed is None else (f"--randseed={own.seed}",)),
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        *windows,
    )
    argv = _fio(own, *options)
    return ClientCommand(
        argv, _ENV, {}, timeout_s=seconds + _MARGIN_S, workdir=target.path, output_files=output_files
    )
