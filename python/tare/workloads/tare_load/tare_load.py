"""tare-load, tare's own load generator: closed loop, or arrivals at intended times.

One process warms up and measures, so that the measure phase never starts cold: `warm_up` has no command of its own.
What it reports, and what each figure means: docs/reference/workloads/tare-load.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed, StudyError
from tare.workloads import ClientCommand, Measurement, Parameters, Target
from tare.workloads.tare_load.document import Document, read_document
from tare.workloads.tare_load.logs import LOGS
from tare.workloads.tare_load.measurement import measurement
from tare.workloads.tare_load.parameters import TareLoadParameters

PROTOCOLS: Mapping[str, str] = {"redis": "redis", "valkey": "redis", "postgresql": "postgresql"}
"""Database → what tare-load is to speak with it."""
_NAMELESS = frozenset({"redis"})
"""Protocols whose servers tare sets up with a password, and with neither a user nor a database of its own."""
SCHEMA = "tare"
"""The database that the run's user may use."""

PROGRAM, JOB_FILE, SECRET_FILE, TRACE_FILE = "tare-load", "job.json", "secret", "arrivals.csv"
_LOAD_CONNECTIONS, _LOAD_PIPELINE = 4, 64
_LOAD_BASE_S, _LOAD_RECORDS_PER_S = 300.0, 2000.0
"""A load slower than this is taken for dead."""
_CONNECT_S, _DRAIN_S, _MARGIN_S = 30.0, 10.0, 60.0
_NO_DOCUMENT: Mapping[int, str] = {1: "the client's machine failed it", 2: "it was asked wrongly", 3: "no server"}


class TareLoad:
    """Describes calls of tare-load, and reads what it writes."""

    parameters: ClassVar[type[Parameters]] = TareLoadParameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """What is loaded, word by word."""
        own = _own(parameters)
        if own.job.load is None:
            return {}
        loaded = {"job": own.job.load_file(), "statements": own.job.load.statements}
        return {"records": own.job.load.records, "load": json.dumps(loaded, sort_keys=True)}

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Send the load's steps once for each record."""
        own = _own(parameters)
        load = own.job.load
        if load is None:
            raise StudyError("this job loads nothing", hint="give it a `load`, with records and steps")
        pipeline = 1 if len(load.steps) > 1 else _LOAD_PIPELINE
        argv = (
            *_beginning(target, run_dir),
            f"--connections={_LOAD_CONNECTIONS}",
            f"--depth={pipeline}",
            f"--operations={load.records}",
        )
        return ClientCommand(
            argv=argv,
            env={},
            files={JOB_FILE: json.dumps(own.job.load_file()), SECRET_FILE: _secret(target)},
            timeout_s=_LOAD_BASE_S + load.records / _LOAD_RECORDS_PER_S,
            check_output=lambda stdout, _: _all_loaded(read_document(stdout), load.records),
            setup_statements=load.statements,
        )

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """None of its own: the process that measures has warmed up before, on the same connections."""
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Warm up, and measure for `measure_s`."""
        own = _own(parameters)
        argv = (
            *_beginning(target, run_dir),
            f"--connections={own.connections}",
            f"--depth={own.pipeline}",
            f"--threads={own.threads}",
            f"--seed={own.seed or 0}",
            *_arrivals(own, run_dir),
            f"--warm-up={own.warmup_s!r}",
            f"--duration={own.measure_s!r}",
            f"--window={own.hold_s!r}",
            f"--connect-limit={_CONNECT_S!r}",
            f"--reply-limit={own.reply_limit_s!r}",
            f"--drain-limit={_DRAIN_S!r}",
            f"--logs={run_dir}",
        )
        files = {JOB_FILE: json.dumps(own.job.file()), SECRET_FILE: _secret(target)}
        if own.trace:
            files[TRACE_FILE] = "".join(f"{at!r}\n" for at in own.trace)
        whole_s = own.warmup_s + own.measure_s
        return ClientCommand(
            argv=argv,
            env={},
            files=files,
            timeout_s=whole_s + own.reply_limit_s + _CONNECT_S + _DRAIN_S + _MARGIN_S,
            output_files=LOGS,
            own_warmup_s=own.warmup_s,
        )

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read a measure phase; `RunFailed` unless all of it is there, with right replies."""
        own = _own(parameters)
        last = _last_line(stderr)
        if code in _NO_DOCUMENT:
            raise RunFailed(f"{_NO_DOCUMENT[code]}: {last or f'tare-load ended with {code}'}")
        document = read_document(stdout.read_text(errors="replace"), last)
        if code != 0 and document.end.how == "complete":
            raise RunFailed(f"tare-load ended with {code}: {last or 'it said nothing'}")
        return measurement(document, own, stdout)


def _own(parameters: Parameters) -> TareLoadParameters:
    if not isinstance(parameters, TareLoadParameters):
        raise TypeError(f"not tare-load's parameters: {parameters!r}")
    return parameters


def _beginning(target: Target, run_dir: str) -> tuple[str, ...]:
    protocol = PROTOCOLS.get(target.database)
    if protocol is None:
        raise StudyError(
            f"tare-load does not speak with {target.database}", hint=f"it does with {', '.join(PROTOCOLS)}"
        )
    return (
        PROGRAM,
        "run",
        f"--protocol={protocol}",
        f"--address={target.endpoint.address}:{target.endpoint.port}",
        *(() if protocol in _NAMELESS else (f"--user={target.secrets.user}", f"--database={SCHEMA}")),
        f"--password-file={run_dir}/{SECRET_FILE}",
        f"--job={run_dir}/{JOB_FILE}",
    )


def _secret(target: Target) -> str:
    return f"{target.secrets.password}\n"


def _arrivals(own: TareLoadParameters, run_dir: str) -> tuple[str, ...]:
    waiting = () if own.most_waiting is None else (f"--most-waiting={own.most_waiting}",)
    if own.rate is not None:
        return (f"--rate={own.rate!r}", f"--spacing={own.spacing}", *waiting)
    if own.sustainable is not None:
        climb = ",".join(f"{own.hold_s!r}:{rate!r}" for rate in own.sustainable.rates_per_s)
        return (f"--stages={climb}", f"--spacing={own.spacing}", *waiting)
    if own.stages:
        stages = ",".join(stage.text for stage in own.stages)
        return (f"--stages={stages}", f"--spacing={own.spacing}", *waiting)
    return (f"--trace={run_dir}/{TRACE_FILE}", *waiting) if own.trace else ()


def _all_loaded(document: Document, records: int) -> None:
    document.must_be_complete()
    told = document.measure
    if told.right != records:
        raise RunFailed(f"{told.right} of {records} records were loaded{document.first_error}")


def _last_line(stderr: Path) -> str:
    lines = [line for line in stderr.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix(f"{PROGRAM}: ") if lines else ""
