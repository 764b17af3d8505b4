"""Workloads for tests: one that queries the fake database, and one that needs no database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from tare.errors import RunFailed
from tare.workloads import ClientCommand, Files, Latency, Measurement, Parameters, Target, TurnCounts, Window

_GRACE_S = 10.0
_SECRET_FILE = "fake.secret"  # noqa: S105 - the name of a file

_PYTHON = ("python3", "-I", "-S", "-c")

_CLIENT = """
import fcntl, json, socket, sys, threading, time
run_dir, host, port, job = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
password = open(f"{run_dir}/fake.secret").read()

def connect():
    stream = socket.create_connection((host, port), timeout=30).makefile("rw")
    if ask(stream, f"auth {password}") != "ok":
        sys.exit("access denied")
    return stream

def ask(stream, line):
    stream.write(line + "\\n")
    stream.flush()
    return stream.readline().rstrip("\\n")

if job["what"] == "load":
    if job["fault"] == "load" or ask(connect(), f"load {job['rows']}") != "ok":
        sys.exit("cannot load")
    sys.exit(0)

fault = job["fault"] if job["what"] in ("measure", "in-turns") else ""
if fault and job["fault_log"]:
    with open(job["fault_log"], "a+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # two clients of a duet come here at once
        log.seek(0)
        if len(log.read()) >= job["fault_times"]:
            fault = ""
        log.write(".")
if fault == "crash":
    sys.exit("told to crash")
if fault == "hang":
    time.sleep(3600)

if job["fault"] in ("late", "late-unreported"):
    time.sleep(0.6)

done, errors = [], []
if job["what"] == "in-turns":
    streams = [connect() for _ in range(job["threads"])]
    open(f"{run_dir}/turns.connected", "w").close()
    while True:
        try:
            schedule = json.load(open(f"{run_dir}/turns.json"))
            break
        except FileNotFoundError:
            time.sleep(0.005)
    took = []
    for start, settled, end in schedule["turns"]:
        time.sleep(max(0, start / 1e9 - time.monotonic()))
        ends = []
        while (sent := time.monotonic_ns()) < end or not ends:  # a busy machine may wake it after its turn
            answer = ask(streams[0], "get")
            if answer != f"ok {job['rows']}":
                errors.append(answer)
            ends.append((sent, time.monotonic_ns()))
        took.append(ends)
    time.sleep(max(0, schedule["until"] / 1e9 - time.monotonic()))
    first = schedule["warm_up"]
    figures = {"turns": schedule["turns"][first:], "took": took[first:], "slices": schedule["slices"]}
    print(json.dumps({**figures, "errors": len(errors)}))
    sys.exit(0)
streams = [connect() for _ in range(job["threads"])]
began, began_at = time.monotonic(), time.time()
end = began + job["seconds"] * (0.5 if fault == "cut-short" else 1)

def drive(stream):
    while (sent := time.monotonic()) < end or not (done or errors):  # a busy machine may start it after its end
        answer = ask(stream, "get")
        now = time.monotonic()
        (done if answer == f"ok {job['rows']}" else errors).append((now - began, (now - sent) * 1000))

threads = [threading.Thread(target=drive, args=(stream,)) for stream in streams]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({
    "seconds": time.monotonic() - began,
    "began_at": None if job["fault"] == "late-unreported" else began_at,
    "done": [] if fault == "no-events" else sorted(done),
    "errors": len(errors) + (fault == "errors"),
}))
"""


class FakeParameters(Parameters):
    """Parameters of the fake workload. `fault`: what goes wrong in the measure phase (`load`: in loading).

    Clients report when they began to drive. With `late`, that is 0.6 s after their start; with `late-unreported`,
    they begin as late and do not report it. With `fault_log`, a path on the client's host, only the first
    `fault_times` measure phases go wrong.
    """

    rows: int = Field(default=100, gt=0)
    threads: int = Field(default=2, gt=0)
    fault: Literal["", "load", "crash", "hang", "errors", "no-events", "cut-short", "late", "late-unreported"] = ""
    fault_times: int = Field(default=1, gt=0)
    fault_log: str = ""


class FakeWorkload:
    """Describes calls of the fake client, which times from the actual send and so is blind to stalls."""

    parameters: ClassVar[type[Parameters]] = FakeParameters
    needs_database: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """The number that the database keeps."""
        return {"rows": _own(parameters).rows}

    def load(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Tell the database its number."""
        return _command(_own(parameters), target, run_dir, "load", 0.0)

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        """Describe the same work as `measure`; its figures do not count."""
        if parameters.warmup_s == 0:
            return None
        return _command(_own(parameters), target, run_dir, "warm-up", parameters.warmup_s)

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Ask for the number, over and over."""
        return _command(_own(parameters), target, run_dir, "measure", parameters.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read the one line that the client prints."""
        if code != 0:
            words = stderr.read_text(errors="replace").split("\n")
            raise RunFailed(f"the fake client ended with {code}: {' '.join(words).strip()}")
        printed = _printed(stdout)
        if "turns" in printed:
            return _measured_in_turns(printed)
        done: list[tuple[float, float]] = [(at, latency) for at, latency in printed["done"]]
        if printed["errors"]:
            raise RunFailed(f"{printed['errors']} wrong answers")
        if not done:
            raise RunFailed("no events")
        if printed["seconds"] < parameters.measure_s:
            raise RunFailed(f"cut short: {printed['seconds']:.3f} s of {parameters.measure_s:g} s")
        return replace(_measurement(done, printed["seconds"], parameters), started_at=printed["began_at"])


def _printed(stdout: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(stdout.read_text()))
    except ValueError as error:
        raise RunFailed(f"the output is incomplete: {error}") from error


def _own(parameters: Parameters) -> FakeParameters:
    if not isinstance(parameters, FakeParameters):
        raise TypeError(f"not the fake workload's parameters: {parameters!r}")
    return parameters


def _command(parameters: FakeParameters, target: Target, run_dir: str, what: str, seconds: float) -> ClientCommand:
    job = {"what": what, "seconds": seconds, **parameters.model_dump(mode="json")}
    endpoint = target.endpoint
    return ClientCommand(
        argv=(*_PYTHON, _CLIENT, run_dir, endpoint.address, str(endpoint.port), json.dumps(job)),
        env={},
        files={_SECRET_FILE: target.secrets.password},
        timeout_s=seconds + _GRACE_S,
    )


def _measurement(done: list[tuple[float, float]], seconds: float, parameters: Parameters) -> Measurement:
    latencies = sorted(latency for _, latency in done)
    counts: dict[float, int] = {}
    for latency in latencies:
        upper = round(latency + 0.005, 2)
        counts[upper] = counts.get(upper, 0) + 1
    return Measurement(
        operations=len(done),
        unit="requests",
        duration_s=seconds,
        throughput_per_s=len(done) / seconds,
        queries_per_s=len(done) / seconds,
        errors=0,
        reconnects=0,
        latency=_latency(latencies),
        histogram=tuple(counts.items()),
        windows=_windows(done, parameters),
    )


def _latency(latencies: list[float]) -> Latency:
    return Latency(
        mean_ms=sum(latencies) / len(latencies),
        min_ms=latencies[0],
        max_ms=latencies[-1],
        p50_ms=_quantile(latencies, 0.50),
        p95_ms=_quantile(latencies, 0.95),
        p99_ms=_quantile(latencies, 0.99),
        resolution=None,
        blind_to_stalls=True,
        timed_from="actual-send",
    )


def _windows(done: list[tuple[float, float]], parameters: Parameters) -> tuple[Window, ...]:
    width = parameters.window_s
    whole = int(parameters.measure_s / width + 1e-9)
    parts = [[latency for at, latency in done if int(at / width) == index] for index in range(whole)]
    return tuple(
        Window(
            end_s=(index + 1) * width,
            throughput_per_s=len(part) / width,
            latency_p95_ms=_quantile(sorted(part), 0.95) if part else None,
            errors_per_s=0.0,
            reconnects_per_s=0.0,
        )
        for index, part in enumerate(parts)
    )


def _measured_in_turns(printed: Mapping[str, Any]) -> Measurement:
    """Make the measurement of a client that took turns: a window for each turn."""
    turns, driven, zero = printed["turns"], printed["took"], printed["turns"][0][0]
    settled_at = [settled for _, settled, _ in turns]
    took = [[(sent, end) for sent, end in each if sent >= at] for each, at in zip(driven, settled_at, strict=True)]
    latencies = sorted((end - sent) / 1e6 for each in took for sent, end in each)
    counts = TurnCounts(
        settled_s=tuple((settled - zero) / 1e9 for _, settled, _ in turns),
        ends_s=tuple((end - zero) / 1e9 for _, _, end in turns),
        operations=tuple(len(each) for each in took),
        first_half=tuple(
            sum(2 * sent < settled + end for sent, _ in each)
            for (_, settled, end), each in zip(turns, took, strict=True)
        ),
        latency_ms=tuple(
            sum(end - sent for sent, end in each) / 1e6 / len(each) if each else None for each in took
        ),
        last_s=tuple((each[-1][1] - zero) / 1e9 if each else None for each in driven),
        slices=_slices(printed) if printed["slices"] else None,
    )
    return Measurement(
        operations=len(latencies),
        unit="requests",
        duration_s=counts.ends_s[-1],
        throughput_per_s=len(latencies) / counts.seconds,
        queries_per_s=None,
        errors=printed["errors"],
        reconnects=0,
        latency=_latency(latencies),
        histogram=tuple(sorted(Counter(round(latency + 0.005, 2) for latency in latencies).items())),
        windows=(),
        turns=counts,
    )


def _slices(printed: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    count = printed["slices"]
    return tuple(
        tuple(sum((sent - start) * count // (end - start) == slice_ for sent, _ in each) for slice_ in range(count))
        for (start, _, end), each in zip(printed["turns"], printed["took"], strict=True)
    )


class FakeInTurns:
    """Describes calls of the fake client that takes turns."""

    def refusal(self, parameters: Parameters) -> str | None:  # noqa: ARG002 - the contract's
        """Nothing keeps it from taking turns."""
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        """Describe the command, which waits for its turns."""
        return _command(_own(parameters), target, run_dir, "in-turns", 0.0)


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


_PROGRAM = """
import json, sys, time
file, job = sys.argv[1] + "/file", json.loads(sys.argv[2])
if job["what"] == job["fault"]:
    sys.exit(f"told to fail in {job['fault']}")
if job["what"] == "load":
    open(file, "w").write("x" * job["bytes"])
    sys.exit(0)
if job["bytes"] and len(open(file).read()) != job["bytes"]:
    sys.exit("not the file that was made")
began, done = time.monotonic(), 0
while time.monotonic() - began < job["seconds"]:
    done += 1
    time.sleep(0.001)
print(json.dumps({"seconds": time.monotonic() - began, "done": done}))
"""


class FakeProgramParameters(Parameters):
    """Parameters of the fake program. `bytes`: size of the loaded file, 0: none. `fault`: step that fails."""

    bytes: int = Field(default=0, ge=0)
    fault: Literal["", "load", "warm-up", "measure"] = ""


class FakeProgram:
    """Describes calls of the fake program."""

    parameters: ClassVar[type[Parameters]] = FakeProgramParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Size of the file, if there is one."""
        size = _program_parameters(parameters).bytes
        return {"bytes": size} if size else {}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Make the file."""
        return _program_command(_program_parameters(parameters), target, "load", 0.0)

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """Describe the same work as `measure`; its figures do not count."""
        if parameters.warmup_s == 0:
            return None
        return _program_command(_program_parameters(parameters), target, "warm-up", parameters.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Count."""
        return _program_command(_program_parameters(parameters), target, "measure", parameters.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read the one line that the program prints."""
        if code != 0:
            raise RunFailed(f"the fake program ended with {code}: {stderr.read_text(errors='replace').strip()}")
        printed = _printed(stdout)
        rate = printed["done"] / printed["seconds"]
        end_s = parameters.measure_s
        return Measurement(
            operations=printed["done"],
            unit="rounds",
            duration_s=printed["seconds"],
            throughput_per_s=rate,
            queries_per_s=None,
            errors=0,
            reconnects=0,
            latency=Latency(None, None, None, None, None, None, resolution=None, blind_to_stalls=True),
            histogram=(),
            windows=(Window(end_s, rate, None, errors_per_s=0.0, reconnects_per_s=0.0),),
        )


def _program_parameters(parameters: Parameters) -> FakeProgramParameters:
    if not isinstance(parameters, FakeProgramParameters):
        raise TypeError(f"not the fake program's parameters: {parameters!r}")
    return parameters


def _program_command(parameters: FakeProgramParameters, target: Files, what: str, seconds: float) -> ClientCommand:
    job = {"what": what, "seconds": seconds, "bytes": parameters.bytes, "fault": parameters.fault}
    argv = (*_PYTHON, _PROGRAM, target.path, json.dumps(job))
    return ClientCommand(argv, {}, {}, timeout_s=seconds + _GRACE_S)
