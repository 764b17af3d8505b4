"""Parameters of tare-load in a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from tare.study.values import LONGEST_S, MOST, Count, Seconds, Strict
from tare.workloads import Parameters
from tare.workloads.tare_load.core_workload import CoreWorkloadSpec
from tare.workloads.tare_load.job import Job
from tare.workloads.tare_load.oltp import READ_ONLY, OltpSpec
from tare.workloads.tare_load.sustainable import SustainableSpec
from tare.workloads.tare_load.work import Work

if TYPE_CHECKING:
    import polars as pl

_MOST_ARRIVALS = 1_000_000
"""Most arrivals of a trace; the study's plan contains all of them."""
CONNECT = "connect"
"""Name of connecting as an operation."""
_Rate = Annotated[float, Field(gt=0.0, le=1e9)]


class Stage(Strict):
    """A stretch of time with a constant `rate`, or a linear change (`from`, `to`), in arrivals per second."""

    model_config = ConfigDict(serialize_by_alias=True)

    seconds: float = Field(gt=0.0, le=1e7)
    rate: float | None = Field(default=None, ge=0.0, le=1e9)
    from_: float | None = Field(default=None, alias="from", ge=0.0, le=1e9)
    to: float | None = Field(default=None, ge=0.0, le=1e9)

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Stage:
        if (self.rate is None) == (self.from_ is None) or (self.from_ is None) != (self.to is None):
            raise ValueError("a stage has either `rate`, or both `from` and `to`")
        return self

    @property
    def text(self) -> str:
        """The stage in tare-load's syntax."""
        rates = f"{self.rate!r}" if self.rate is not None else f"{self.from_!r}..{self.to!r}"
        return f"{self.seconds!r}:{rates}"

    @property
    def expected(self) -> float:
        """Expected number of arrivals in the stage."""
        mean = self.rate if self.rate is not None else ((self.from_ or 0.0) + (self.to or 0.0)) / 2
        return self.seconds * mean


def _trace(given: Any) -> Any:
    """Replace a file by its arrivals, so that the study is complete without the file."""
    if isinstance(given, str):
        return tuple(read_trace(Path(given)))
    if isinstance(given, list):
        return tuple(tuple(one) if isinstance(one, list) else one for one in given)
    return given


def _within_a_year(trace: tuple[Arrival, ...]) -> tuple[Arrival, ...]:
    """Also of arrivals that stand in the study itself."""
    if not all(0 <= _seconds(arrival) <= LONGEST_S for arrival in trace):
        raise ValueError(f"each arrival is at 0 to {LONGEST_S:.0f} s, a year")
    return trace


Arrival = float | tuple[float, str]
"""Seconds from the start, with the name of its operation if the trace has one."""
Trace = Annotated[
    tuple[Arrival, ...],
    BeforeValidator(_trace),
    AfterValidator(_within_a_year),
    WithJsonSchema(
        {"type": "string", "description": "A file of arrivals, CSV or Parquet: seconds, and a column `operation`."}
    ),
]


class TareLoadParameters(Parameters):
    """tare-load.

    One of these says what to send: `job` (the user's own statements), `sysbench` (a script of sysbench, on
    sysbench's tables) or `ycsb` (YCSB's core workload).
    Arrivals: without `rate`, `stages`, `trace` and `sustainable`, the loop is closed: each connection sends as soon
    as a reply has come. `rate`: arrivals per second over all connections. `stages`: rates one after the other; the
    first follows after the last again. `trace`: a CSV or Parquet file with the seconds of arrivals in its
    first column, which is read with the study and kept in it; a column `operation` may name the operation of each.
    `sustainable`: a climb of rates that takes `measure_s` in all. `spacing`: distribution of the gaps between
    arrivals, except for a trace. `pipeline`: requests in flight on one connection.
    `requests_per_connection`: after so many a connection is closed and opened anew, and connecting is the operation
    `connect`. `most_waiting`: arrivals that may wait to be sent; further ones are missed.
    `max_error_share`: share of operations without a right reply up to which a run is valid.
    """

    paths: ClassVar[tuple[str, ...]] = ("trace", "ycsb.property_file")

    job: Job | None = None
    sysbench: OltpSpec | None = None
    ycsb: CoreWorkloadSpec | None = None
    connections: int = Field(default=1, ge=1, le=1_000_000)
    pipeline: int = Field(default=1, ge=1, le=32_000)
    requests_per_connection: int | None = Field(default=None, ge=1, le=2**32 - 1)
    threads: int = Field(default=1, ge=1, le=1024)
    rate: _Rate | None = None
    stages: tuple[Stage, ...] = Field(default=(), max_length=1000)
    trace: Trace = ()
    sustainable: SustainableSpec | None = None
    spacing: Literal["even", "poisson"] = "poisson"
    most_waiting: int | None = Field(default=None, ge=1, le=MOST)
    reply_limit_s: Seconds = Field(default=10.0, gt=0.0)
    max_error_share: float = Field(default=0.0, ge=0.0, lt=1.0)
    seed: Count | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _can_be(self) -> TareLoadParameters:
        self._must_be_one_work()
        arrivals = [name for name in ("rate", "stages", "trace", "sustainable") if getattr(self, name)]
        if len(arrivals) > 1:
            raise ValueError(f"arrivals are set twice: by {' and '.join(arrivals)}")
        if self.stages and not sum(stage.expected for stage in self.stages):
            raise ValueError("no stage has a rate above 0")
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if self.window_s < 0.01:
            raise ValueError("a window must last 0.01 s or more")
        if self.sustainable is not None:
            self._must_tell_quantiles(self.sustainable)
        if self.threads > self.connections:
            raise ValueError(f"{self.threads} threads are more than the {self.connections} connections")
        whole_s = self.warmup_s + self.measure_s
        if self.requests_per_connection is not None and CONNECT in self.work.kinds:
            raise ValueError(
                f"with `requests_per_connection`, connecting is the operation {CONNECT!r}: rename yours"
            )
        if self.trace:
            self._must_be_known_operations(self.trace)
        if self.trace and (last_s := _seconds(self.trace[-1])) < self.warmup_s:
            raise ValueError(
                f"the trace ends after {last_s:g} s, within the warm-up: its first arrivals are the "
                f"warm-up's, and {whole_s:g} s are requested"
            )
        return self

    def _must_be_one_work(self) -> None:
        if len(self._works) != 1:
            both = " and ".join(f"`{name}`" for name in self._works)
            which = f"{both} are both set: use one" if both else "there is nothing to send"
            raise ValueError(f"{which}; `job`, `sysbench` or `ycsb` says what")
        if self.work.has_steps("") and self.pipeline > 1:
            raise ValueError("an operation of several steps waits for each reply, so `pipeline` must be 1")
        if self.work.ends_after is not None and (self.stages or self.trace or self.sustainable is not None):
            raise ValueError("`ycsb.operations` ends a closed loop or one `rate`: leave it out, or the arrivals")

        if self.open_loop and self.job is not None and self.job.thinks:
            raise ValueError("`think_ms` is for a closed loop: arrivals come when they are due")

    def _must_be_known_operations(self, trace: tuple[Arrival, ...]) -> None:
        named = [one[1] for one in trace if isinstance(one, tuple)]
        if 0 < len(named) < len(trace):
            raise ValueError("some arrivals of the trace have an operation, and some have none")
        kinds = self.work.kinds
        if unknown := sorted({*named} - {*kinds}):
            raise ValueError(f"the trace has {unknown[0]!r}, which is not one of {', '.join(kinds)}")

    def _must_tell_quantiles(self, spec: SustainableSpec) -> None:
        hold_s = self.measure_s / spec.rungs
        if hold_s * spec.from_per_s < spec.fewest():
            raise ValueError(
                f"a rung of {hold_s:g} s has {hold_s * spec.from_per_s:.0f} requests at {spec.from_per_s:g}/s, and "
                f"{spec.quantile} takes {spec.fewest():.0f}: a longer measure_s, fewer rungs or a higher from_per_s"
            )

    @property
    def _works(self) -> Mapping[str, Work]:
        given: Mapping[str, Work | None] = {"job": self.job, "sysbench": self.sysbench, "ycsb": self.ycsb}
        return {name: work for name, work in given.items() if work is not None}

    @property
    def work(self) -> Work:
        """What tare-load sends."""
        return next(iter(self._works.values()))

    @property
    def opens(self) -> int | None:
        """All of them before it warms up."""
        return self.connections

    @property
    def waits_for_disk(self) -> str | None:
        """Scripts of sysbench that write: each commit waits for the log on disk."""
        if self.sysbench is None or self.sysbench.script in READ_ONLY:
            return None
        return f"{self.sysbench.script} writes, and each commit waits for the disk"

    @property
    def replicas(self) -> int | None:
        """Replication factor of YCSB's keyspace."""
        return None if self.ycsb is None else self.ycsb.replicas

    @property
    def open_loop(self) -> bool:
        """Whether arrivals do not wait for replies."""
        return self.rate is not None or bool(self.stages) or bool(self.trace) or self.sustainable is not None

    @property
    def hold_s(self) -> float:
        """Length of tare-load's windows in seconds; in a climb, that of a rung."""
        return self.window_s if self.sustainable is None else self.measure_s / self.sustainable.rungs


def _seconds(arrival: Arrival) -> float:
    return arrival[0] if isinstance(arrival, tuple) else arrival


def read_trace(path: Path) -> Sequence[Arrival]:
    """Read the arrivals of a trace, in ascending order, with operations if there is a column of that name.

    Raises `ValueError` that names the file and the arrival.
    """
    import polars as pl  # slow to import, and few studies have a trace

    from tare.parquet import read_parquet

    try:
        table = read_parquet(path) if path.suffix == ".parquet" else _csv(path)
    except FileNotFoundError as error:
        raise ValueError(f"cannot read the trace {path}: {error.strerror}") from error
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise ValueError(f"cannot read the trace {path}: {str(error).partition(chr(10))[0]}") from error
    if not table.width or not table.height:
        raise ValueError(f"the trace {path} has no arrivals")
    if table.height > _MOST_ARRIVALS:
        raise ValueError(f"the trace {path} has {table.height} arrivals; {_MOST_ARRIVALS} is the limit")
    column = table.to_series(0)
    try:
        times = [float(value) for value in column.cast(pl.Float64)]
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ValueError(f"the trace {path}: its first column must be seconds, and nothing else") from error
    for number, (before, after) in enumerate(pairwise((0.0, *times)), start=1):
        if not before <= after:
            raise ValueError(f"the trace {path}: arrival {number} is earlier than the previous one, or before 0")
        if after > LONGEST_S:
            raise ValueError(f"the trace {path}: arrival {number} is later than {LONGEST_S:.0f} s, a year")
    named = next((name for name in table.columns[1:] if str(name).strip().lower() == "operation"), None)
    if named is None:
        return times
    operations = [str(value).strip() if value is not None else "" for value in table[named]]
    return list(zip(times, operations, strict=True))


def _csv(path: Path) -> pl.DataFrame:
    """Read a CSV file. Its first line is a header unless it begins with a number."""
    import polars as pl

    with path.open(encoding="utf-8") as file:
        first = file.readline().split(",")[0].strip()
    try:
        float(first)
    except ValueError:
        return pl.read_csv(path, has_header=True)
    return pl.read_csv(path, has_header=False)
