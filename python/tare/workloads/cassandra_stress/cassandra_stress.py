"""cassandra-stress 3.11, from the image of the database itself.

The closed loop (neither `fixed` nor `throttle`) and `throttle` are blind to stalls. With `fixed`, latency counts
from the intended send, which shows stalls. docs/reference/workloads/cassandra-stress.md.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from tare.errors import RunFailed, StudyError
from tare.workloads import ClientCommand, Measurement, Parameters, Target, output_path
from tare.workloads.cassandra_stress.histograms import FILE as HISTOGRAMS
from tare.workloads.cassandra_stress.histograms import read_histograms
from tare.workloads.cassandra_stress.measurement import Expected, Logged, measurement, must_have_done
from tare.workloads.cassandra_stress.output import read_output
from tare.workloads.cassandra_stress.parameters import CassandraStressParameters
from tare.workloads.output_text import output_text

KEYSPACE = "tare"
HOME = "/opt/cassandra"
_CLASSPATH = f"{HOME}/conf:{HOME}/tools/lib/*:{HOME}/lib/*"
DRIVEN = ("cassandra", "cassandra-5")
_NO_JMX = 9
"""JMX port without a listener: no client outside the server's namespace can reach JMX to count collections."""
_MARGIN_S = 120.0
"""Time for the JVM's start, connecting, its sleep of 2 s, and operations that wait for their time limit."""
_LOAD_BASE_S, _LOAD_RECORDS_PER_S = 300.0, 200.0
_text = partial(output_text, tool="cassandra-stress", most_mib=256)
_ENV: Mapping[str, str] = {"LC_ALL": "C.UTF-8"}


class CassandraStress:
    """Describes calls of cassandra-stress and parses its output."""

    parameters: ClassVar[type[Parameters]] = CassandraStressParameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 8.0  # measured: 7.1 to 8.6, idle machine, three nodes

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Number of rows, their shape and the table's definition."""
        own = _own(parameters)
        return {
            "records": own.records,
            "columns": own.columns,
            "column_bytes": own.column_bytes,
            "replication": own.replication,
            "compaction": own.compaction or "",
        }

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Create the table and write every row to all replicas, as loaded data are copied for every run."""
        own = _own(parameters)
        consistency = "ALL" if own.replication > 1 else own.consistency
        words = ("write", f"n={own.records}", "no-warmup", f"cl={consistency}")
        rest = ("-pop", f"seq=1..{own.records}", "-rate", f"threads={own.threads}", "-log", "interval=10s")
        return ClientCommand(
            argv=(*_java(own, run_dir), *words, *rest, *_schema(own), *_server(target)),
            env=_ENV,
            files={},
            timeout_s=_LOAD_BASE_S + own.records / _LOAD_RECORDS_PER_S,
            check_output=_judge(Expected(operations=own.records)),
        )

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        """Run the measured mix in a separate process."""
        own = _own(parameters)
        return None if own.warmup_s == 0 else _run(own, target, run_dir, own.warmup_s)

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Run the mix for `measure_s`."""
        own = _own(parameters)
        command = _run(own, target, run_dir, own.measure_s, f"hdrfile={run_dir}/{HISTOGRAMS}")
        return replace(command, output_files=(HISTOGRAMS,))

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse a measure phase. Raises `RunFailed` unless the output is complete and without errors."""
        own = _own(parameters)
        by = code - 128 if 128 < code < 128 + signal.NSIG else -code
        if by > 0:
            name = signal.Signals(by).name if by in signal.valid_signals() else f"signal {by}"
            raise RunFailed(f"cassandra-stress was ended by {name}")
        asked, log = _asked(own), output_path(stdout, HISTOGRAMS)
        logged = Logged(
            latency=read_histograms(log, asked.timed_from or "actual-send"),
            service_time=read_histograms(log, "actual-send") if asked.timed_from == "intended-send" else None,
        )
        measured = measurement(read_output(_text(stdout), _text(stderr)), asked, logged)
        if code != 0:
            raise RunFailed(f"cassandra-stress ended with {code}")
        return measured


def _own(parameters: Parameters) -> CassandraStressParameters:
    if not isinstance(parameters, CassandraStressParameters):
        raise TypeError(f"not cassandra-stress's parameters: {parameters!r}")
    return parameters


def _asked(own: CassandraStressParameters) -> Expected:
    timed_from: Literal["intended-send", "actual-send"] = "actual-send" if own.fixed is None else "intended-send"
    return Expected(
        seconds=own.measure_s,
        rate_per_s=own.rate_per_s,
        window_s=own.window_s,
        timed_from=timed_from,
        max_error_share=own.max_error_share,
    )


def _java(own: CassandraStressParameters, run_dir: str) -> tuple[str, ...]:
    """Command line of the JVM. Heap and collector are set: a JVM derives them from limits, which arms may vary."""
    return (
        "java",
        f"-Xms{own.heap}",
        f"-Xmx{own.heap}",
        "-XX:+UseParallelGC",
        "-XX:-UsePerfData",
        "-Duser.language=en",
        f"-Duser.home={run_dir}",
        f"-Djava.io.tmpdir={run_dir}",
        "-Dlogback.configurationFile=logback-tools.xml",
        "-cp",
        _CLASSPATH,
        "org.apache.cassandra.stress.Stress",
    )


def _run(
    own: CassandraStressParameters, target: Target, run_dir: str, seconds: float, *logged: str
) -> ClientCommand:
    words: list[str] = [own.command]
    if own.command == "mixed":
        words.append(f"ratio({','.join(f'{kind}={share:g}' for kind, share in sorted(own.ratio.items()))})")
    words += [f"duration={seconds:.0f}s", "no-warmup", f"cl={own.consistency}"]
    rate = [f"threads={own.threads}"]
    if own.fixed is not None:
        rate.append(f"fixed={own.fixed}/s")
    if own.throttle is not None:
        rate.append(f"throttle={own.throttle}/s")
    errors = ("-errors", "ignore", "retries=0") if own.max_error_share > 0 else ()
    drawn = own.population or f"uniform(1..{own.records})"
    log = ("-log", f"interval={own.window_s:.0f}s", *logged)
    argv = (*_java(own, run_dir), *words, "-pop", f"dist={drawn}", "-rate", *rate, *log, *errors, *_schema(own))
    asked = Expected(max_error_share=own.max_error_share)
    return ClientCommand(
        (*argv, *_server(target)), _ENV, {}, timeout_s=seconds + _MARGIN_S, check_output=_judge(asked)
    )


def _schema(own: CassandraStressParameters) -> tuple[str, ...]:
    """Options of the schema: each call creates a missing table, and reads must name the written columns."""
    compaction = () if own.compaction is None else (f"compaction(strategy={own.compaction})",)
    return (
        *("-col", f"n=fixed({own.columns})", f"size=fixed({own.column_bytes})"),
        *("-schema", f"replication(factor={own.replication})", f"keyspace={KEYSPACE}", *compaction),
    )


def _server(target: Target) -> tuple[str, ...]:
    if target.database not in DRIVEN:
        hint = f"it supports {' and '.join(DRIVEN)}"
        raise StudyError(f"cassandra-stress does not support {target.database}", hint=hint)
    endpoint = target.endpoint
    return (
        "-mode",
        "native",
        "cql3",
        "-node",
        target.addresses,
        "-port",
        f"native={endpoint.port}",
        f"jmx={_NO_JMX}",
    )


def _judge(asked: Expected) -> Callable[[str, str], None]:
    def judge(stdout: str, stderr: str) -> None:
        must_have_done(read_output(stdout, stderr), asked)

    return judge
