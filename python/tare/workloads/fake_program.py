"""A workload without a database, for tests: a program that reads its own file over and over and counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from tare.errors import RunFailed
from tare.workloads import ClientCommand, Files, Latency, Measurement, Parameters, Window

_GRACE_S = 10.0

_PROGRAM = """
import json, pathlib, sys, time
where, job = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
if job["what"] == job["fault"]:
    sys.exit(f"told to fail in {job['fault']}")
if job["what"] == "load":
    (where / "file").write_text("x" * job["bytes"])
    sys.exit(0)
if job["bytes"] and len((where / "file").read_text()) != job["bytes"]:
    sys.exit("not the file that was made")
began, done = time.monotonic(), 0
while time.monotonic() - began < job["seconds"]:
    done += 1
    time.sleep(0.001)
print(json.dumps({"seconds": time.monotonic() - began, "done": done}))
"""


class FakeProgramParameters(Parameters):
    """`bytes`: of the file that is made beforehand, 0 for none. `fault`: the step that fails."""

    bytes: int = Field(default=0, ge=0)
    fault: Literal["", "load", "warm-up", "measure"] = ""


class FakeProgram:
    """The program above."""

    parameters: ClassVar[type[Parameters]] = FakeProgramParameters
    needs_database: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """The size of the file, where there is one."""
        size = _own(parameters).bytes
        return {"bytes": size} if size else {}

    def load(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Make the file."""
        return _command(_own(parameters), target, "load", 0.0)

    def warm_up(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand | None:  # noqa: ARG002 - the contract's
        """The same as `measure`, not counted."""
        if parameters.warmup_s == 0:
            return None
        return _command(_own(parameters), target, "warm-up", parameters.warmup_s)

    def measure(self, parameters: Parameters, target: Files, run_dir: str) -> ClientCommand:  # noqa: ARG002 - the contract's
        """Count."""
        return _command(_own(parameters), target, "measure", parameters.measure_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read the one line that it prints."""
        if code != 0:
            raise RunFailed(f"the fake program ended with {code}: {stderr.read_text(errors='replace').strip()}")
        told = json.loads(stdout.read_text())
        rate = told["done"] / told["seconds"]
        end_s = parameters.measure_s
        return Measurement(
            operations=told["done"],
            unit="rounds",
            duration_s=told["seconds"],
            throughput_per_s=rate,
            queries_per_s=None,
            errors=0,
            reconnects=0,
            latency=Latency(None, None, None, None, None, None, resolution=None, blind_to_stalls=True),
            histogram=(),
            windows=(Window(end_s, rate, None, errors_per_s=0.0, reconnects_per_s=0.0),),
        )


def _own(parameters: Parameters) -> FakeProgramParameters:
    if not isinstance(parameters, FakeProgramParameters):
        raise TypeError(f"not the fake program's parameters: {parameters!r}")
    return parameters


def _command(parameters: FakeProgramParameters, target: Files, what: str, seconds: float) -> ClientCommand:
    job = {"what": what, "seconds": seconds, "bytes": parameters.bytes, "fault": parameters.fault}
    argv = ("python3", "-I", "-c", _PROGRAM, target.path, json.dumps(job))
    return ClientCommand(argv, {}, {}, timeout_s=seconds + _GRACE_S)
