"""Workloads: data set, operation mix and arrival process, driven by a load generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.study.values import Seconds


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


@dataclass(frozen=True)
class Window:
    """One fixed interval inside the measure phase; never a replicate.

    `end_s`: seconds since the generator began to measure. `queue_length`: operations that have arrived and wait at
    the end of the window, if arrivals do not wait for answers.
    """

    end_s: float
    throughput_per_s: float
    latency_p95_ms: float | None
    errors_per_s: float | None
    reconnects_per_s: float | None
    queries_per_s: float | None = None
    queue_length: int | None = None


@dataclass(frozen=True)
class Latency:
    """Latency in milliseconds; percentiles come from a histogram with relative bucket width `resolution`."""

    mean_ms: float | None
    min_ms: float | None
    max_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    resolution: float | None
    blind_to_stalls: bool
    """Whether the generator times from the actual send in a closed loop (coordinated omission).

    Requests that a stalled server kept from being sent are then never timed: when a server at 1,000/s stopped for
    2 s of 10 s, which gives a true p99 of about 1.9 s, a closed loop of sysbench reported 0.21 ms.
    """
    timed_from: Literal["intended-send", "actual-send"] | None = None
    """Start of the timed interval: the intended send for latency proper, the actual send for mere service time."""


@dataclass(frozen=True)
class Operation:
    """Figures of one kind of operation, if the generator distinguishes kinds.

    `answers`: return code → count, as the generator names them. `service_time`: from the actual send, if `latency`
    is from the intended send and both were measured. `histogram`: of `latency`, in the form of `Measurement`.
    """

    operations: int
    errors: int
    latency: Latency
    service_time: Latency | None = None
    histogram: tuple[tuple[float, int], ...] = ()
    answers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LatencyParts:
    """Parts of the latency of requests around one percentile: means of `sampled` requests, which add up.

    `lag_ms`: from the intended time until the client noticed. `waiting_ms`: from then until the request was sent,
    while others were in flight. `server_ms`: until the kernel had the reply (wire and server). `unread_ms`: until
    the client had read the reply.
    """

    sampled: int
    lag_ms: float
    waiting_ms: float
    server_ms: float
    unread_ms: float


@dataclass(frozen=True)
class Rung:
    """One rate of a climb: requested and achieved rate, quantile of latency (`None`: no reply), missed arrivals."""

    rate_per_s: float
    done_per_s: float
    latency_ms: float | None
    missed: int


@dataclass(frozen=True)
class Sustained:
    """Highest rate at which the `quantile` of latency stayed within `within_ms` and no arrival was missed.

    `resolution`: relative step from a rung's rate to the next; `rate_per_s` lies half a step from its neighbours.
    `contradicting`: number of rungs on the wrong side of `rate_per_s`.
    """

    rate_per_s: float
    resolution: float
    quantile: str
    within_ms: float
    contradicting: int
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Encryption:
    """TLS version and cipher of the first connection, as the generator reports.

    `handshake_ms`: median over all connections.
    """

    version: str
    cipher: str
    handshake_ms: float | None


@dataclass(frozen=True)
class TurnCounts:
    """Measured turns of a run that took turns with other arms, as columns; times in seconds.

    `settled_s`, `ends_s`: bounds of the measured time, since the generator began to measure. `operations`: those
    meant to begin within it, `first_half` of them in its first half. `latency_ms`: their mean. `last_s`: when the
    turn's last operation ended. `slices`: operations in equal parts of the turn, from its start on, by when they
    were meant to begin; `None` if they were not asked for.
    """

    settled_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    operations: tuple[int, ...]
    first_half: tuple[int, ...]
    latency_ms: tuple[float | None, ...]
    last_s: tuple[float | None, ...]
    slices: tuple[tuple[int, ...], ...] | None = None

    @property
    def seconds(self) -> float:
        """Measured time of all turns."""
        return sum(ends - settled for settled, ends in zip(self.settled_s, self.ends_s, strict=True))


@dataclass(frozen=True)
class Measurement:
    """Figures of one measure phase, as the generator reported them."""

    operations: int
    """Number of operations, such as transactions; `unit` names what is counted."""
    unit: str
    duration_s: float
    throughput_per_s: float
    queries_per_s: float | None
    errors: int
    reconnects: int | None
    latency: Latency
    histogram: tuple[tuple[float, int], ...]
    """(value in ms that represents a bucket, count), ascending; the counts add up to `operations`."""
    windows: tuple[Window, ...]
    details: Mapping[str, float] = field(default_factory=dict)
    """Further figures of the generator; the workload's reference page explains their names."""
    by_operation: Mapping[str, Operation] = field(default_factory=dict)
    """Kind of operation (lower case, words joined by hyphens: `read`, `read-modify-write`) → its figures.

    Empty if the generator does not distinguish kinds. Their counts add up to at least `operations`. `latency`
    covers all kinds together; what the parts do not give (percentiles without a histogram) is `None` there.
    """
    started_at: float | None = None
    """Seconds since the epoch when the generator began to measure, perhaps seconds after its start; by its own wall
    clock, which may be in another time zone. `None`: it does not report that."""
    parts: Mapping[str, LatencyParts] = field(default_factory=dict)
    """`p50`, `p99`, `p99.9` → parts of their latency; empty if the generator does not measure parts."""
    encryption: Encryption | None = None
    """`None` if connections were not encrypted, or the generator does not report it."""
    sustained: Sustained | None = None
    """Result of a search for a sustainable rate; the other figures then cover all rates together."""
    turns: TurnCounts | None = None
    """Counts of each turn; `None` for a run alone. Throughputs are then by the measured time of the turns."""


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
