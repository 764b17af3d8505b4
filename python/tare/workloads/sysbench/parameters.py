"""Parameters of sysbench's OLTP workloads in a study."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from tare.study.values import Count, Seconds
from tare.workloads import Parameters

Script = Literal[
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
]

READ_ONLY = frozenset({"oltp_read_only", "oltp_point_select"})

Natural = Annotated[Count, Field(ge=0)]


def _whole(seconds: float) -> float:
    if seconds != int(seconds):
        raise ValueError("sysbench takes whole seconds")
    return seconds


WholeSeconds = Annotated[Seconds, AfterValidator(_whole)]


class SysbenchParameters(Parameters):
    """Options of sysbench 1.0.20 by sysbench's names, with its defaults; tare passes all of them explicitly.

    `rate`: transactions per second over all threads, which arrive at random (exponential gaps) whether or not
    earlier ones have ended; `None` is the closed loop, in which each thread waits for an answer before it goes on.
    `max_error_share`: largest share of transactions with an error that sysbench retries and ignores (deadlock 1213,
    lock wait timeout 1205, record changed 1020); a run with more fails.
    `seed`: threads draw the states of their generators from one seeded generator in no fixed order, so only a
    single thread repeats the same queries (tried: 1 thread does, 4 threads do not).
    """

    script: Script = "oltp_read_only"
    tables: Count = Field(default=1, ge=1)
    table_size: Count = Field(default=10_000, ge=1)
    threads: int = Field(default=1, ge=1, le=100_000)
    rate: Count | None = Field(default=None, ge=1)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)
    max_error_share: float = Field(default=0.0, ge=0.0, lt=1.0)
    seed: int | None = Field(default=None, ge=1, le=2**31 - 1)

    point_selects: Natural = 10
    simple_ranges: Natural = 1
    sum_ranges: Natural = 1
    order_ranges: Natural = 1
    distinct_ranges: Natural = 1
    range_selects: bool = True
    range_size: Count = Field(default=100, ge=1)
    index_updates: Natural = 1
    non_index_updates: Natural = 1
    delete_inserts: Natural = 1
    skip_trx: bool = False

    auto_inc: bool = True
    secondary: bool = False
    create_secondary: bool = True
    storage_engine: str = Field(default="innodb", pattern=r"^[A-Za-z0-9_]+$")
    db_ps_mode: Literal["auto", "disable"] = "auto"

    rand_type: Literal["uniform", "gaussian", "special", "pareto"] = "special"
    rand_spec_iter: Count = Field(default=12, ge=1)
    rand_spec_pct: int = Field(default=1, ge=1, le=100)
    rand_spec_res: int = Field(default=75, ge=0, lt=100)
    rand_pareto_h: float = Field(default=0.2, gt=0.0, lt=1.0)

    @property
    def opens(self) -> int | None:
        """Each thread has a connection of its own."""
        return self.threads

    @property
    def waits_for_disk(self) -> str | None:
        """Scripts that write: each commit waits for the log on disk."""
        return None if self.script in READ_ONLY else f"{self.script} writes, and each commit waits for the disk"

    @model_validator(mode="after")
    def _windows_fit(self) -> SysbenchParameters:
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        return self
