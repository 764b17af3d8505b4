"""YCSB 0.17: YCSB's core with tare's bindings, or a user's own YCSB.

YCSB always exits with 0, so tare judges every phase by its output. The closed loop (no `target`) is blind to
stalls. With a target, latency counts from the intended send, which shows stalls. docs/reference/workloads/ycsb.md
has what was tried, and which figures are reliable.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed, StudyError
from tare.workloads import ClientCommand, Measurement, Parameters, Target
from tare.workloads.output_text import output_text
from tare.workloads.ycsb.bindings import BINDING_OF, BINDINGS, OWN_CLASSPATH, Binding
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import read_output
from tare.workloads.ycsb.parameters import YcsbParameters
from tare.workloads.ycsb.properties import CORE_WORKLOAD, DATA, WORKLOAD

FILE = "ycsb.properties"

_MOST_OPERATIONS = 2**31 - 1
_MARGIN_S = 60.0
"""Time for the JVM's start, connecting and the report."""
_LOAD_BASE_S, _LOAD_RECORDS_PER_S = 300.0, 200.0
"""A slower load counts as dead."""
_text = partial(output_text, tool="YCSB", most_mib=256)
_ENV: Mapping[str, str] = {"LC_ALL": "C"}
_GC: Mapping[str, str] = {"serial": "UseSerialGC", "parallel": "UseParallelGC", "g1": "UseG1GC"}


_TO_ALL: Mapping[str, str] = {"cassandra.writeconsistencylevel": "ALL"}
"""Property of a load: loaded data are copied for every run, so every replica must have all of them."""


class Ycsb:
    """Describes calls of YCSB and parses its output."""

    parameters: ClassVar[type[Parameters]] = YcsbParameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 2.5  # measured: 2.0 to 3.0, idle machine

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Number of records, their shape and Cassandra's properties."""
        own = _own(parameters)
        shape = {name: own.mix[name] for name in DATA if name in own.mix}
        loading = {name: value for name, value in own.mix.items() if name.startswith("cassandra.")}
        return {"record_count": own.records, **shape, **loading}

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Create the table and insert every record."""
        own = _own(parameters)
        binding = _binding(own, target)
        records = int(own.mix.get("insertcount", own.records))
        properties = {
            **_common(own, target, binding),
            **(binding.loading if own.home is None else {}),
            **(_TO_ALL if (own.replicas or 1) > 1 else {}),
            "operationcount": "1",  # the workload reads it, even for a load
        }
        argv = (*_java(own, binding), "site.ycsb.Client", "-load", "-s", "-P", f"{run_dir}/{FILE}")
        return ClientCommand(
            argv=argv,
            env=_ENV,
            files={FILE: _file(properties)},
            timeout_s=_LOAD_BASE_S + records / _LOAD_RECORDS_PER_S,
            check_output=_judge(Expected(operations=records)),
            setup_statements=() if own.home is None or binding.table is None else binding.table(own.mix),
        )

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        """Run the measured mix with updates for inserts, which would take the keys of the measure phase."""
        own = _own(parameters)
        if own.warmup_s == 0:
            return None
        updates = own.share_of("update") + own.share_of("insert")
        calm = {**own.properties, "insertproportion": 0, "updateproportion": updates}
        warm = own.model_copy(update={"properties": calm, "operations": None})
        return _run(warm, target, run_dir, own.warmup_s)

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Run the mix for `measure_s`, or until `operations` are done."""
        own = _own(parameters)
        return _run(own, target, run_dir, own.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse a measure phase. Raises `RunFailed` unless the output is complete and without errors."""
        own = _own(parameters)
        printed = read_output(_text(stdout), _text(stderr))
        by = code - 128 if 128 < code < 128 + signal.NSIG else -code
        if by > 0:
            name = signal.Signals(by).name if by in signal.valid_signals() else f"signal {by}"
            raise RunFailed(f"YCSB was ended by {name}")
        measured = measurement(printed, _asked(own))
        if code != 0:
            raise RunFailed(f"YCSB ended with {code}")
        return measured


def _own(parameters: Parameters) -> YcsbParameters:
    if not isinstance(parameters, YcsbParameters):
        raise TypeError(f"not YCSB's parameters: {parameters!r}")
    return parameters


def _asked(own: YcsbParameters) -> Expected:
    return Expected(
        operations=own.operations,
        seconds=own.measure_s if own.operations is None else None,
        target_per_s=None if own.target is None else float(own.target),
        max_error_share=own.max_error_share,
        interval=own.measurement_interval,
        window_s=own.window_s,
    )


def _binding(own: YcsbParameters, target: Target) -> Binding:
    name = BINDING_OF.get(target.database)
    if name is None:
        raise StudyError(
            f"YCSB does not support {target.database}", hint=f"it supports {', '.join(sorted(BINDING_OF))}"
        )
    if own.binding not in {None, name}:
        raise StudyError(f"the binding {own.binding} does not support {target.database}", hint=f"{name} does")
    return BINDINGS[name]


def _java(own: YcsbParameters, binding: Binding) -> tuple[str, ...]:
    """Command line of the JVM. Heap and collector are set: a JVM derives them from limits, which arms may vary."""
    home = own.home
    classpath = OWN_CLASSPATH if home is None else f"{home}/conf:{home}/lib/*:{home}/{binding.folder}/lib/*"
    return (
        "java",
        f"-Xms{own.heap}",
        f"-Xmx{own.heap}",
        f"-XX:+{_GC[own.gc]}",
        "-XX:-UsePerfData",
        "-Duser.language=en",
        "-cp",
        classpath,
    )


def _run(own: YcsbParameters, target: Target, run_dir: str, seconds: float) -> ClientCommand:
    binding = _binding(own, target)
    properties = {
        **_common(own, target, binding),
        "operationcount": str(own.operations or _MOST_OPERATIONS),
        "maxexecutiontime": f"{seconds:.0f}",
        "status.interval": f"{own.window_s:.0f}",
        "measurementtype": own.measurementtype,
        "measurement.interval": own.measurement_interval,
        "measurement.histogram.verbose": "true",
        "hdrhistogram.percentiles": "50,90,95,99,99.9",
        **({} if own.target is None else {"target": str(own.target)}),
    }
    argv = (*_java(own, binding), "site.ycsb.Client", "-t", "-s", "-P", f"{run_dir}/{FILE}")
    asked = Expected(seconds=seconds, max_error_share=own.max_error_share)
    return ClientCommand(
        argv, _ENV, {FILE: _file(properties)}, timeout_s=seconds + _MARGIN_S, check_output=_judge(asked)
    )


def _common(own: YcsbParameters, target: Target, binding: Binding) -> dict[str, str]:
    return {
        WORKLOAD: CORE_WORKLOAD,
        "db": binding.own if own.home is None else binding.upstream,
        "recordcount": str(own.records),
        "threadcount": str(own.threads),
        **own.mix,
        **binding.server(target),
    }


def _file(properties: Mapping[str, str]) -> str:
    """Render a property file. It holds user and password, as every user of the machine can read arguments."""
    lines = []
    for name, value in properties.items():
        if "\n" in value or "\\" in value:
            raise StudyError(f"the property {name} cannot hold a line break or a backslash")
        lines.append(f"{name}={value}\n")
    return "".join(lines)


def _judge(asked: Expected) -> Callable[[str, str], None]:
    def judge(stdout: str, stderr: str) -> None:
        measurement(read_output(stdout, stderr), asked)

    return judge
