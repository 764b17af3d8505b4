"""Workloads: data set, operation mix and arrival process, carried out by a load generator."""

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
    """Parameters of every workload; a plug-in's own model adds its keys. Durations in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    paths: ClassVar[tuple[str, ...]] = ()
    """Keys that name files, dotted where they lie deeper, which a study file means relative to itself."""

    warmup_s: Seconds = Field(default=0.0, ge=0.0)
    measure_s: Seconds = Field(gt=0.0)
    window_s: Seconds = Field(default=1.0, gt=0.0)
    cooldown_s: Seconds = Field(default=0.0, ge=0.0)

    @property
    def waits_for_disk(self) -> str | None:
        """Why this work is bound by storage, in a clause; `None` where it is not, or only measuring shows it."""
        return None

    @property
    def opens(self) -> int | None:
        """How many connections its client opens to a single server; `None` where only running shows it."""
        return None

    @property
    def replicas(self) -> int | None:
        """How many nodes it asks to have each row; `None` where it does not say."""
        return None


@dataclass(frozen=True)
class Target:
    """The server to load, as the client must address it. `others`: further nodes' addresses; they have its port."""

    database: str
    endpoint: Endpoint
    secrets: Secrets
    others: tuple[str, ...] = ()

    @property
    def addresses(self) -> str:
        """Of all nodes, joined by commas as load generators take them."""
        return ",".join((self.endpoint.address, *self.others))


@dataclass(frozen=True)
class Files:
    """What a workload without a database acts on: the directory of its files, as the program sees it."""

    path: str


@dataclass(frozen=True)
class ClientCommand:
    """What the client executes; `files` are written to its run directory first, name → content.

    `timeout_s` is when a client that has not ended is taken for dead. `workdir`: `None` for the image's own.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    timeout_s: float
    workdir: str | None = None
    check_output: Callable[[str, str], None] | None = None
    """Raises `RunFailed` for what its stdout and stderr tell, where an exit code of 0 is no sign of success."""
    setup_statements: tuple[str, ...] = ()
    """Of a load: statements that the server executes first, for a client that does not make its own table."""
    output_files: tuple[str, ...] = ()
    """Of a measure phase: files that it writes into its run directory, to be kept beside its output: `left_by`."""
    own_warmup_s: float = 0.0
    """Of a measure phase: for how long the same process warms up before it begins to measure."""


def output_path(stdout: Path, name: str) -> Path:
    """Where a file that the client left lies, beside its standard output: `measure.NAME` by `measure.stdout`."""
    return stdout.with_name(f"{stdout.stem}.{name}")


@dataclass(frozen=True)
class Window:
    """One fixed interval inside the measure phase; never a replicate. `end_s` since the generator began to measure.

    `queue_length`: operations that have arrived and wait at its end, where arrivals do not wait for answers.
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
    """Milliseconds. Percentiles from the histogram; `resolution` is the histogram's relative bucket width."""

    mean_ms: float | None
    min_ms: float | None
    max_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    resolution: float | None
    blind_to_stalls: bool
    """True where the generator times from the actual send in a closed loop (coordinated omission).

    What a stalled server kept from being sent is then never timed: with a stop of 2 s in 10 s at 1,000/s, whose
    true p99 is about 1.9 s, a closed loop of sysbench reported 0.21 ms.
    """
    timed_from: Literal["intended-send", "actual-send"] | None = None
    """From when to the answer: latency proper from the intended send, the mere service time from the actual one."""


@dataclass(frozen=True)
class Operation:
    """What the generator reported of one kind of operation, where it distinguishes kinds.

    `answers`: return code → count, as the generator names them. `service_time`: from the actual send, where
    `latency` is from the intended one and both were measured. `histogram`: as that of `Measurement`, of `latency`.
    """

    operations: int
    errors: int
    latency: Latency
    service_time: Latency | None = None
    histogram: tuple[tuple[float, int], ...] = ()
    answers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LatencyParts:
    """Where the latency of requests around one percentile went: means of so many sampled requests, which add up.

    `lag_ms`: from the intended time until the client noticed. `waiting_ms`: from there until the request was sent,
    as others were in flight. `server_ms`: until the kernel had the reply: wire and server. `unread_ms`: until the
    client had read it.
    """

    sampled: int
    lag_ms: float
    waiting_ms: float
    server_ms: float
    unread_ms: float


@dataclass(frozen=True)
class Rung:
    """One rate of a climb: asked for and done, the quantile in question (`None`: no reply), arrivals missed."""

    rate_per_s: float
    done_per_s: float
    latency_ms: float | None
    missed: int


@dataclass(frozen=True)
class Sustained:
    """The highest rate at which the `quantile` of latency stayed within `within_ms` and no arrival was missed.

    `resolution`: by how much a rung's rate is above the one before it; the rate lies half of that from either.
    `contradicting`: rungs on the wrong side of it.
    """

    rate_per_s: float
    resolution: float
    quantile: str
    within_ms: float
    contradicting: int
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Encryption:
    """What the first connection agreed on, by the generator's word. `handshake_ms`: median of all connections."""

    version: str
    cipher: str
    handshake_ms: float | None


@dataclass(frozen=True)
class Measurement:
    """What the generator reported of one measure phase."""

    operations: int
    """Transactions, or whatever the workload counts as its unit; `unit` names it."""
    unit: str
    duration_s: float
    throughput_per_s: float
    queries_per_s: float | None
    errors: int
    reconnects: int | None
    latency: Latency
    histogram: tuple[tuple[float, int], ...]
    """(the value in ms that stands for a bucket, count), rising; the sum of counts is `operations`."""
    windows: tuple[Window, ...]
    details: Mapping[str, float] = field(default_factory=dict)
    """What else the generator reported, by names that the workload's reference page explains."""
    by_operation: Mapping[str, Operation] = field(default_factory=dict)
    """Kind of operation (lower case, words joined by hyphens: `read`, `read-modify-write`) → its figures.

    Empty where the generator does not tell them apart. Their counts add up to `operations` at least, and `latency`
    is that of all of them together; of what cannot be had from the parts (percentiles, without a histogram) `None`.
    """
    started_at: float | None = None
    """When it began to measure, which may be seconds after its start, by its own clock: seconds since the epoch by
    its wall clock, perhaps that of another time zone. `None`: it does not say."""
    parts: Mapping[str, LatencyParts] = field(default_factory=dict)
    """`p50`, `p99`, `p99.9` → where their latency went; empty where the generator cannot take it apart."""
    encryption: Encryption | None = None
    """`None` where connections were in clear text, or the generator does not tell."""
    sustained: Sustained | None = None
    """Of a phase that looked for a sustainable rate; its other figures are those of all rates together."""


On_contra = TypeVar("On_contra", Target, Files, contravariant=True)


class Workload(Protocol[On_contra]):
    """A load generator, described. No method starts a process itself.

    It acts on a `Target`, which is a database; or on `Files`, and then the program is itself the SUT: it runs where
    the study places that, and nothing else runs.
    """

    parameters: ClassVar[type[Parameters]]
    needs_database: ClassVar[bool]
    """True for one that acts on a `Target`."""
    slow_start_s: ClassVar[float]
    """Seconds that each process of it takes until it drives and from there to its end, where they are many."""

    def dataset(self, parameters: Parameters) -> Mapping[str, str | int]:
        """What determines the loaded data, and nothing else: the key of its snapshot. Empty: nothing is loaded."""
        ...

    def load(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand:
        """The command that fills the database or makes the files; not asked for where `dataset` is empty."""
        ...

    def warm_up(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand | None:
        """The command of the warm-up, `None` where there is none."""
        ...

    def measure(self, parameters: Parameters, target: On_contra, run_dir: str) -> ClientCommand:
        """The command of the measure phase."""
        ...

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        """Read the generator's own output. Raises `RunFailed` on any sign that the run is not whole."""
        ...
