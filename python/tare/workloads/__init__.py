"""Workloads: data set, operation mix and arrival process, driven by a load generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.record.measurement import (
    Encryption,
    Latency,
    LatencyParts,
    Measurement,
    Operation,
    Rung,
    Sustained,
    TurnCounts,
    Window,
)
from tare.study.values import Seconds

__all__ = [
    "CONNECTED_FILE",
    "TURNS_FILE",
    "ClientCommand",
    "Encryption",
    "Files",
    "Latency",
    "LatencyParts",
    "Measurement",
    "Operation",
    "Parameters",
    "Rung",
    "Sustained",
    "Target",
    "TurnCounts",
    "Window",
    "Workload",
    "output_path",
]  # fmt: skip
"""Contract of a workload, with the record's types of what it reports."""


class Parameters(BaseModel):
    """Parameters of every workload, to which each workload's model adds its own keys. Durations are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    paths: ClassVar[tuple[str, ...]] = ()
    """Dotted keys that name files; in a study file, these paths are relative to that file."""

    warmup_s: Seconds = Field(default=0.0, ge=0.0)
    measure_s: Seconds = Field(gt=0.0)
    window_s: Seconds = Field(default=1.0, gt=0.0)
    cooldown_s: Seconds = Field(default=0.0, ge=0.0)

    @property
    def waits_for_disk(self) -> str | None:
        """Clause on why storage limits this work; `None` if it does not, or if only a measurement can tell."""
        return None

    @property
    def opens(self) -> int | None:
        """How many connections its client opens to a single server; `None` where only running shows it."""
        return None

    @property
    def replicas(self) -> int | None:
        """Number of nodes that store each row; `None` if the workload does not set it."""
        return None


@dataclass(frozen=True)
class Target:
    """The server to load, as the client must address it. `others`: addresses of further nodes, on the same port."""

    database: str
    endpoint: Endpoint
    secrets: Secrets
    others: tuple[str, ...] = ()
    socket: str | None = None
    """Path of the server's Unix socket as the client sees it, to be used in place of the endpoint; `None`: TCP."""

    @property
    def addresses(self) -> str:
        """Addresses of all nodes, joined by commas as load generators take them."""
        return ",".join((self.endpoint.address, *self.others))


@dataclass(frozen=True)
class Files:
    """What a workload without a database acts on: the directory of its files, as the program sees it."""

    path: str


@dataclass(frozen=True)
class ClientCommand:
    """Command of the client. `files` are first written to its run directory, name → content.

    After `timeout_s`, a client that has not ended counts as dead. `workdir`: `None` for the image's own.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    timeout_s: float
    workdir: str | None = None
    check_output: Callable[[str, str], None] | None = None
    """Check of stdout and stderr that raises `RunFailed`, for clients that fail with exit code 0 too."""
    setup_statements: tuple[str, ...] = ()
    """For a load: statements that the server executes first, if the client does not create its table."""
    output_files: tuple[str, ...] = ()
    """For a measure phase: files that the client writes into its run directory; kept, see `output_path`."""
    own_warmup_s: float = 0.0
    """For a measure phase: seconds for which the same process warms up before it measures."""


TURNS_FILE, CONNECTED_FILE = "turns.json", "turns.connected"
"""Schedule in the run directory of a client that takes turns; it appears once all arms' clients are connected."""


def output_path(stdout: Path, name: str) -> Path:
    """Path of a file that the client left, next to its standard output: `measure.NAME` for `measure.stdout`."""
    return stdout.with_name(f"{stdout.stem}.{name}")


On_contra = TypeVar("On_contra", Target, Files, contravariant=True)


class Workload(Protocol[On_contra]):
    """Description of a load generator. No method starts a process itself.

    A workload acts on a `Target`, which is a database, or on `Files`. With `Files`, the program itself is the SUT:
    it runs where the study places the SUT, and nothing else runs.
    """

    parameters: ClassVar[type[Parameters]]
    needs_database: ClassVar[bool]
    """Whether the workload acts on a `Target`."""
    slow_start_s: ClassVar[float]
    """Seconds that each process takes to start and end, besides the time it drives; for estimates of time."""

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """Key of the snapshot of loaded data: all that determines the data, and nothing else. Empty: no load."""
        ...

    def load(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand:
        """Describe the command that fills the database or makes the files; not called if `dataset` is empty."""
        ...

    def warm_up(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand | None:
        """Describe the command of the warm-up; `None` without a warm-up of its own."""
        ...

    def measure(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand:
        """Describe the command of the measure phase."""
        ...

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Parse the generator's output. Raises `RunFailed` on any sign that the run is incomplete."""
        ...
