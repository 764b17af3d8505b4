"""tare-load, tare's own load generator: closed loop, or arrivals at intended times.

One process warms up and measures, so that the measure phase never starts cold; `warm_up` has no command of its own.
docs/reference/workloads/tare-load.md explains the figures that it reports.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.errors import RunFailed, StudyError
from tare.workloads import ClientCommand, Measurement, Parameters, Target
from tare.workloads.tare_load.document import read_document
from tare.workloads.tare_load.logs import LOGS
from tare.workloads.tare_load.measurement import measurement
from tare.workloads.tare_load.parameters import Arrival, TareLoadParameters
from tare.workloads.tare_load.work import Invocation, protocol_of

_NAMELESS = frozenset({"redis", "mongodb"})
"""Protocols whose servers tare sets up without a separate user."""
_OPEN = frozenset({"mongodb"})
"""Protocols whose servers tare sets up without authentication."""
SCHEMA = "tare"
"""Database that the run's user may use."""

PROGRAM, SECRET_FILE, TRACE_FILE, AUTHORITY_FILE = "tare-load", "secret", "arrivals.csv", "authority.pem"
_LOAD_BASE_S, _LOAD_RECORDS_PER_S = 300.0, 2000.0
"""A slower load counts as dead."""
_CONNECT_S, _DRAIN_S, _MARGIN_S = 30.0, 10.0, 60.0
_NOTHING_RIGHT = 5
"""Exit code of a run without a right reply; its document says why."""
_NO_DOCUMENT: Mapping[int, str] = {1: "the client's machine failed", 2: "its arguments were wrong", 3: "no server"}


class TareLoad:
    """Describes calls of tare-load and parses its output."""

    parameters: ClassVar[type[Parameters]] = TareLoadParameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """All that determines the loaded data."""
        return _own(parameters).work.dataset()

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Create and fill the tables, or run a job's own load steps once for each record."""
        invocation = _own(parameters).work.load_invocation(protocol_of(target.database), run_dir)
        return ClientCommand(
            argv=(*_beginning(invocation, target, run_dir), *invocation.options),
            env={},
            files={**invocation.files, **_known_to(target)},
            timeout_s=_LOAD_BASE_S + invocation.rows / _LOAD_RECORDS_PER_S,
            check_output=lambda stdout, stderr: _all_loaded(stdout, stderr, invocation.right),
            setup_statements=invocation.statements,
        )

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """Always `None`: the measuring process warms up first, on the same connections."""
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Warm up, then measure for `measure_s`."""
        own, protocol = _own(parameters), protocol_of(target.database)
        if own.pipeline > 1 and own.work.has_steps(protocol):
            raise StudyError(
                f"an operation takes several requests with {target.database}", hint="leave `pipeline` out"
            )
        invocation = own.work.measure_invocation(protocol, run_dir, own.measure_s)
        ended_by_time = own.work.ends_after is None
        argv = (
            *_beginning(invocation, target, run_dir),
            *invocation.options,
            f"--connections={own.connections}",
            f"--depth={own.pipeline}",
            f"--threads={own.threads}",
            *_renewal(own),
            f"--seed={own.seed or 0}",
            *_arrivals(own, run_dir),
            f"--warm-up={own.warmup_s!r}",
            *((f"--duration={own.measure_s!r}",) if ended_by_time else ()),
            f"--window={own.hold_s!r}",
            f"--connect-limit={_CONNECT_S!r}",
            f"--reply-limit={own.reply_limit_s!r}",
            f"--drain-limit={_DRAIN_S!r}",
            f"--logs={run_dir}",
        )
        files = {**invocation.files, **_known_to(target)}
        if own.trace:
            files[TRACE_FILE] = _trace(own.trace)
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
        """Parse a measure phase. Raises `RunFailed` unless the output is complete and the replies are right."""
        own = _own(parameters)
        last = _last_line(stderr)
        if code in _NO_DOCUMENT:
            raise RunFailed(f"{_NO_DOCUMENT[code]}: {last or f'tare-load ended with {code}'}")
        by = code - 128 if 128 < code < 128 + signal.NSIG else -code
        printed = stdout.read_text(errors="replace")
        if by > 0 and not printed.strip():
            name = signal.Signals(by).name if by in signal.valid_signals() else f"signal {by}"
            raise RunFailed(f"tare-load was ended by {name}")
        document = read_document(printed, last)
        if code not in (0, _NOTHING_RIGHT) and document.end.how == "complete":
            raise RunFailed(f"tare-load ended with {code}: {last or 'it printed nothing'}")
        return measurement(document, own, stdout)


def _own(parameters: Parameters) -> TareLoadParameters:
    if not isinstance(parameters, TareLoadParameters):
        raise TypeError(f"not tare-load's parameters: {parameters!r}")
    return parameters


def _beginning(invocation: Invocation, target: Target, run_dir: str) -> tuple[str, ...]:
    protocol = protocol_of(target.database)
    user = () if protocol in _NAMELESS else (f"--user={target.secrets.user}",)
    password = () if protocol in _OPEN else (f"--password-file={run_dir}/{SECRET_FILE}",)
    schema = (f"--database={SCHEMA}",) if protocol != "redis" and invocation.names_schema else ()
    return (
        PROGRAM,
        invocation.command,
        f"--protocol={protocol}",
        f"--address={_address(target, protocol)}",
        *user,
        *schema,
        *password,
        *_tls(target, run_dir),
    )


def _tls(target: Target, run_dir: str) -> tuple[str, ...]:
    """Options for TLS. The address is not verified, as the certificate is older than a container's address."""
    if target.secrets.certificate is None:
        return ()
    return ("--tls", f"--ca={run_dir}/{AUTHORITY_FILE}", "--tls-verify=ca")


def _address(target: Target, protocol: str) -> str:
    """Socket or address of the server; for Cassandra, of all nodes, so that requests go to one with their row."""
    if target.socket is not None:
        return f"unix:{target.socket}"
    nodes = (target.endpoint.address, *(target.others if protocol == "cql" else ()))
    return ",".join(f"{node}:{target.endpoint.port}" for node in nodes)


def _known_to(target: Target) -> Mapping[str, str]:
    """Files for authentication: the password, and the certificate of the authority."""
    made = target.secrets.certificate
    authority = {} if made is None else {AUTHORITY_FILE: made.authority}
    return {SECRET_FILE: f"{target.secrets.password}\n", **authority}


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


def _renewal(own: TareLoadParameters) -> tuple[str, ...]:
    most = own.requests_per_connection
    return () if most is None else (f"--requests-per-connection={most}",)


def _trace(arrivals: tuple[Arrival, ...]) -> str:
    """Render a trace in the CSV form that tare-load reads."""
    lines = (f"{one[0]!r},{one[1]}" if isinstance(one, tuple) else repr(one) for one in arrivals)
    head = "seconds,operation\n" if isinstance(arrivals[0], tuple) else ""
    return head + "".join(f"{line}\n" for line in lines)


def _all_loaded(stdout: str, stderr: str, right: int | None) -> None:
    """Raise `RunFailed` unless all records were loaded. Without a document, stderr has the reason."""
    if not stdout.strip() and (reason := _last_of(stderr)):
        raise RunFailed(f"loading the data: {reason}")
    document = read_document(stdout)
    document.must_be_complete()
    measured = document.measure
    if measured.failed or (right is not None and measured.right != right):
        asked = measured.right + measured.failed if right is None else right
        raise RunFailed(f"{measured.right} of {asked} records were loaded{document.first_error}")


def _last_line(stderr: Path) -> str:
    return _last_of(stderr.read_text(errors="replace"))


def _last_of(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix(f"{PROGRAM}: ") if lines else ""
