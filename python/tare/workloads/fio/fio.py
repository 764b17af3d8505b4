"""fio: reads, writes and fsyncs on prepared files, one file for each job. A SUT without a database.

docs/reference/workloads/fio.md explains what is counted, and when fio measures the page cache instead of a disk.
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
"""A slower load counts as dead."""
_MIB = 1 << 20


class Fio:
    """Describes calls of fio and parses its output."""

    parameters: ClassVar[type[Parameters]] = FioParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Number and size of the files; how they are read and written later does not matter."""
        own = _own(parameters)
        return {"numjobs": own.numjobs, "bytes": own.size_bytes}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Write every byte of every file; fio's own layout would skip the files of jobs that only write."""
        own = _own(parameters)
        bs = _MIB if own.size_bytes % _MIB == 0 else own.bs_bytes
        argv = _fio(own, "--rw=write", f"--bs={bs}", "--end_fsync=1")
        timeout_s = _LOAD_BASE_S + own.numjobs * own.size_bytes / _LOAD_BYTES_PER_S
        return ClientCommand(argv, _ENV, {}, timeout_s=timeout_s, workdir=target.path)

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """Run the same mix on the same files in a separate process, with another seed so that offsets differ."""
        own = _own(parameters)
        if own.warmup_s == 0:
            return None
        seed = None if own.seed is None else own.seed % (2**31 - 1) + 1
        return _run(own.model_copy(update={"seed": seed}), target, own.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:
        """Read and write for `measure_s`, and log the windows of each job."""
        own = _own(parameters)
        windows = (f"--write_iops_log={run_dir}/{_LOG}", f"--log_avg_msec={own.window_s * 1000:.0f}")
        return _run(own, target, own.measure_s, windows, output_files=_logs(own))

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse a measure phase. Raises `RunFailed` unless the output is complete and consistent."""
        own = _own(parameters)
        return measurement(own, stdout, stderr, [output_path(stdout, name) for name in _logs(own)], code)


def _own(parameters: Parameters) -> FioParameters:
    if not isinstance(parameters, FioParameters):
        raise TypeError(f"not the parameters of fio: {parameters!r}")
    return parameters


def _logs(own: FioParameters) -> tuple[str, ...]:
    """Names that fio gives to its logs, one for each job."""
    return tuple(f"{_LOG}_iops.{job}.log" for job in range(1, own.numjobs + 1))


def _fio(own: FioParameters, *options: str) -> tuple[str, ...]:
    """Command line of fio. Jobs are threads, so that they end with the process that tare watches."""
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
