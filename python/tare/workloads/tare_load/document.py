"""Model of the document that tare-load prints; docs/reference/workloads/tare-load.md explains its keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tare.errors import RunFailed

FORMAT = 1


class _Reported(BaseModel):
    """Holds only the keys that tare reads; a newer program of this format may print more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Quantiles(_Reported):
    """Quantiles in nanoseconds; `None`: too few values for one to lie beyond it."""

    count: int
    mean: float
    min: int
    max: int
    p50: int
    p95: int | None
    p99: int | None
    p999: int | None = Field(alias="p99.9")


class Kind(_Reported):
    """Counts of one kind of operation by outcome; `right` is success, the others are failures."""

    name: str
    right: int
    missing: int
    short: int
    wrong: int
    errors: int
    lost: int
    latency_ns: Quantiles | None
    service_ns: Quantiles | None

    @property
    def timed(self) -> int:
        """Operations with a latency: right ones, and lost ones with at least the limit of a reply."""
        return self.right + self.lost

    @property
    def failures(self) -> Mapping[str, int]:
        """Kind of failure → number of operations."""
        counts = {name: getattr(self, name) for name in ("missing", "short", "wrong", "errors", "lost")}
        return {name: count for name, count in counts.items() if count}


class Error(_Reported):
    """An error. `kind`: kind of operation, `None` for an error of a connection."""

    kind: str | None
    code: str
    count: int
    message: str


class Parts(_Reported):
    """Mean parts of the latency of sampled requests around one percentile."""

    count: int
    lag_ns: float
    waiting_ns: float
    server_ns: float
    unread_ns: float


class Split(_Reported):
    """Parts of the latency around each percentile; `None` if nothing was sampled there."""

    sampled: int
    p50: Parts | None
    p99: Parts | None
    p999: Parts | None = Field(alias="p99.9")


class PerOperation(_Reported):
    """Cost of one operation to the client itself."""

    cpu_ns: float
    run_queue_ns: float | None
    switches: float
    faults: float


class Usage(_Reported):
    """Cost of the measure phase to the client. Older programs do not poll."""

    polled_ns: int | None = None


class Measured(_Reported):
    """The measure phase, including operations that were in flight at its end.

    `connect`: connections opened in it; older programs do not say.
    """

    seconds: float
    mark_realtime_ns: int
    right: int
    failed: int
    scheduled: int
    missed: int
    unfinished: int
    requests: int
    disconnects: int
    reconnects: int
    latency_ns: Quantiles | None
    lag_ns: Quantiles | None
    waiting_ns: Quantiles | None
    unread_ns: Quantiles | None
    kinds: tuple[Kind, ...]
    connect: Kind | None = None
    errors: tuple[Error, ...]
    parts: Split
    per_operation: PerOperation | None
    usage: Usage | None = None


class Window(_Reported):
    """One window; seconds from the beginning of the measurement.

    `completed`: right replies in it, also to operations of the warm-up; older programs do not say.
    """

    phase: Literal["warm-up", "measure", "drain"]
    start_s: float
    end_s: float
    right: int
    failed: int
    completed: int | None = None
    scheduled: int
    missed: int
    latency_ns: Quantiles | None
    driven_s: float | None = None

    @property
    def done(self) -> int:
        """Operations that make up the throughput."""
        return self.right if self.completed is None else self.completed

    @property
    def counted_s(self) -> float:
        """Seconds in which operations counted; with turns, those of the turns within the window."""
        return self.end_s - self.start_s if self.driven_s is None else self.driven_s


class Turns(_Reported):
    """Turns as columns: times are nanoseconds from the end of the warm-up."""

    warm_up: int
    settled_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    right: tuple[int, ...]
    first_half: tuple[int, ...]
    failed: tuple[int, ...]
    latency_ns: tuple[int, ...]
    last_ns: tuple[int | None, ...]
    slices: tuple[tuple[int, ...], ...] | None = None


class End(_Reported):
    """How the run ended."""

    how: Literal["complete", "interrupted", "server-gone"]
    reason: str | None


class Plan(_Reported):
    """What tare-load did, as it reports."""

    seed: int
    connections: int
    depth: int
    threads: int
    requests_per_connection: int | None = None
    measure_s: float | None
    kinds: tuple[str, ...]


class Tls(_Reported):
    """`suite`: of the first connection, such as `TLSv1_3 TLS13_AES_256_GCM_SHA384`.

    `handshake_ns`: over all connections.
    """

    suite: str
    handshake_ns: Quantiles | None


class SetUp(_Reported):
    """Opening the connections. `tls`: `None` without encryption."""

    seconds: float
    connections: int
    tls: Tls | None = None


class Client(_Reported):
    """The program as a whole."""

    peak_resident_kib: int | None


class Document(_Reported):
    """The document of one run."""

    format: Literal[1]
    end: End
    plan: Plan
    set_up: SetUp
    measure: Measured
    client: Client
    windows: tuple[Window, ...]
    turns: Turns | None = None

    def must_be_complete(self) -> None:
        """Raise `RunFailed` unless the run went on to its end."""
        if self.end.how == "server-gone":
            raise RunFailed(f"the server went away: {self.end.reason or 'for an unknown reason'}")
        if self.end.how != "complete":
            raise RunFailed(f"tare-load was interrupted: {self.end.reason or 'by an unknown cause'}")

    @property
    def first_error(self) -> str:
        """Server's message for the most frequent error, to append to a sentence; empty without errors."""
        errors = sorted(self.measure.errors, key=lambda error: -error.count)
        return f": {errors[0].message or errors[0].code}" if errors else ""


def read_document(text: str, last_words: str = "") -> Document:
    """Parse the document. Raises `RunFailed` if it is cut short or has another format."""
    because = f": {last_words}" if last_words else ""
    if not text.strip():
        raise RunFailed(f"tare-load printed nothing{because}")
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise RunFailed(f"the document of tare-load is cut short{because or f': {error}'}") from error
    if isinstance(tree, dict) and tree.get("format") != FORMAT:
        raise RunFailed(
            f"tare-load wrote a document of format {tree.get('format')}, and this tare reads {FORMAT}",
            hint="use the tare-load that comes with this tare",
        )
    try:
        return Document.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunFailed(f"the document of tare-load is incomplete: {where}: {first['msg']}") from error
