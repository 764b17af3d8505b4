"""sysbench's `cpu`: each event finds all primes up to a limit by trial division. A SUT without a database.

It measures how fast threads compute, and how the kernel shares CPUs among them; its limits are in
docs/reference/workloads/sysbench-cpu.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from tare.errors import RunFailed
from tare.study.values import Count
from tare.workloads import ClientCommand, Files, Measurement, Parameters, Window
from tare.workloads.sysbench.builtin import Form, call, measurement_of, report_of
from tare.workloads.sysbench.parameters import WholeSeconds

_N = r"(\d+(?:\.\d+)?)"
_WINDOW = re.compile(rf"\[ (\d+)s \] thds: \d+ eps: {_N} lat \(ms,95%\): {_N}")


def _window(line: str) -> Window | None:
    """Parse one line of `--report-interval`. Without an event, sysbench prints a percentile of 0.00."""
    match = _WINDOW.fullmatch(line)
    if match is None:
        return None
    end_s, rate, p95 = (float(figure) for figure in match.groups())
    return Window(end_s, rate, p95 if rate > 0 else None, errors_per_s=0.0, reconnects_per_s=0.0)


FORM = Form("events", _window, {"events_per_s": re.compile(rf"    events per second: +{_N}")})


class SysbenchCpuParameters(Parameters):
    """Options of sysbench 1.0.20 by sysbench's names, with its defaults; tare passes all of them explicitly."""

    cpu_max_prime: Count = Field(default=10_000, ge=3)
    threads: int = Field(default=1, ge=1, le=100_000)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)

    @model_validator(mode="after")
    def _windows_fit(self) -> SysbenchCpuParameters:
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        return self


class SysbenchCpu:
    """Describes calls of `sysbench cpu` and parses its output."""

    parameters: ClassVar[type[Parameters]] = SysbenchCpuParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:  # noqa: ARG002 - there is no data
        """Always empty, as the test needs no data."""
        return {}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Never called, as there is no data set."""
        raise RunFailed("sysbench cpu has nothing to load")

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """Run the same work in a separate process, so that clock rates and caches are up when measuring begins."""
        return None if parameters.warmup_s == 0 else _run(_own(parameters), parameters.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Find primes for `measure_s`; sysbench reports each window, and a histogram at the end."""
        return _run(_own(parameters), parameters.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse a measure phase. Raises `RunFailed` unless the output is complete."""
        report = report_of(parameters, FORM, stdout, stderr, code)
        return measurement_of(report, FORM, {})


def _own(parameters: Parameters) -> SysbenchCpuParameters:
    if not isinstance(parameters, SysbenchCpuParameters):
        raise TypeError(f"not the parameters of sysbench cpu: {parameters!r}")
    return parameters


def _run(own: SysbenchCpuParameters, seconds: float) -> ClientCommand:
    options = (
        f"--threads={own.threads}",
        f"--report-interval={own.window_s:.0f}",
        f"--cpu-max-prime={own.cpu_max_prime}",
    )
    return call("cpu", options, seconds=seconds)
