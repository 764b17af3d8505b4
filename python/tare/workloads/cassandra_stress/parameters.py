"""Parameters of cassandra-stress in a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from tare.study.values import Count, Seconds
from tare.workloads import Parameters


def _whole(seconds: float) -> float:
    if seconds != int(seconds):
        raise ValueError("cassandra-stress takes whole seconds")
    return seconds


WholeSeconds = Annotated[Seconds, AfterValidator(_whole)]
Kind = Literal["read", "write"]
Share = Annotated[float, Field(gt=0.0, le=1e6)]
_REPLICAS: Mapping[str, int] = {"TWO": 2, "THREE": 3}
"""Consistency → replicas that it needs; all others need one."""
_DISTRIBUTION = r"^~?((exp|extreme|qextreme|gaussian|uniform|seq)\([0-9]+\.\.[0-9]+(,[0-9.]+)*|fixed\([0-9]+)\)$"


def _even_split() -> Mapping[Kind, Share]:
    return {"write": 1.0, "read": 1.0}


class CassandraStressParameters(Parameters):
    """cassandra-stress 3.11.

    `ratio`: shares of reads and writes in `mixed`. `population`: distribution of the keys in cassandra-stress's
    syntax (`gaussian(1..1000,5)`); by default uniform over all `records`. `fixed`: operations per second over all
    threads, on a schedule. `throttle`: the same without a schedule. Without both, the loop is closed.
    `max_error_share`: share of failed operations up to which a run is valid.
    """

    command: Literal["write", "read", "mixed"] = "mixed"
    ratio: Mapping[Kind, Share] = Field(default_factory=_even_split)
    records: int = Field(default=1000, ge=1, le=2**31 - 1)
    columns: int = Field(default=5, ge=1, le=1000)
    column_bytes: int = Field(default=34, ge=1, le=1 << 20)
    population: str | None = Field(default=None, pattern=_DISTRIBUTION)
    consistency: Literal[
        "ONE", "TWO", "THREE", "QUORUM", "ALL", "ANY", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM"
    ] = "LOCAL_ONE"
    replication: Count = Field(default=1, ge=1)
    compaction: (
        Literal["SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "TimeWindowCompactionStrategy"] | None
    ) = None
    threads: int = Field(default=1, ge=1, le=100_000)
    fixed: Count | None = Field(default=None, ge=1)
    throttle: Count | None = Field(default=None, ge=1)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)
    heap: str = Field(default="256M", pattern=r"^[1-9]\d*[MG]$")
    max_error_share: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _can_be(self) -> CassandraStressParameters:
        if self.fixed is not None and self.throttle is not None:
            raise ValueError("either `fixed` or `throttle`")
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if _REPLICAS.get(self.consistency, 1) > self.replication:
            raise ValueError(
                f"consistency {self.consistency} cannot be met with a `replication` of {self.replication}"
            )
        if self.consistency == "ANY" and self.command != "write":
            raise ValueError("consistency ANY is only for writes")
        if not self.ratio:
            raise ValueError("`ratio` needs reads or writes")
        return self

    @property
    def replicas(self) -> int:
        """Replication factor of the keyspace."""
        return self.replication

    @property
    def rate_per_s(self) -> int | None:
        """Requested operations per second; `None`: closed loop."""
        return self.fixed if self.fixed is not None else self.throttle
