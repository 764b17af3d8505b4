"""Parameters of YCSB in a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from tare.study.values import Count, Seconds
from tare.workloads import Parameters
from tare.workloads.ycsb.bindings import BindingName
from tare.workloads.ycsb.properties import (
    MIXES,
    OWN,
    REPLICATION,
    SHARES,
    WORKLOAD,
    only_upstream,
    read_properties,
    refusal,
)

_MOST = 2**31 - 1
"""YCSB counts in Java's int; 0 operations would give 0 threads, not an endless run."""
_LONGEST_TICK_S = _MOST / 1e9
"""Longest time between two operations of a thread: YCSB holds it as an int of nanoseconds to draw the start."""


def _whole(seconds: float) -> float:
    if seconds != int(seconds):
        raise ValueError("YCSB takes whole seconds")
    return seconds


WholeSeconds = Annotated[Seconds, AfterValidator(_whole)]


class YcsbParameters(Parameters):
    """YCSB 0.17.

    `core_workload`: the mix of one of YCSB's workloads A to F. `properties`: single properties, which override the
    mix. `property_file`: a file of properties, relative to the study, which is read with the study and kept in it.
    `operations`: number of operations that end the phase; the run fails if `measure_s` does not suffice for them.
    Without `operations`, the phase lasts `measure_s`. `target`: operations per second over all threads; `None` is
    the closed loop. `home`: path of a user's own YCSB in the client's image; by default, tare's image `ycsb`.
    `max_error_share`: share of failed operations up to which a run is valid.
    """

    paths: ClassVar[tuple[str, ...]] = ("property_file",)

    core_workload: Literal["a", "b", "c", "d", "e", "f"] | None = None
    properties: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    property_file: str | None = None
    records: int = Field(default=1000, ge=1, le=_MOST)
    operations: int | None = Field(default=None, ge=1, le=_MOST)
    threads: int = Field(default=1, ge=1, le=100_000)
    target: Count | None = Field(default=None, ge=1)
    warmup_s: WholeSeconds = Field(default=0.0, ge=0.0)
    measure_s: WholeSeconds = Field(gt=0.0)
    window_s: WholeSeconds = Field(default=1.0, gt=0.0)
    measurementtype: Literal[
        "hdrhistogram", "hdrhistogram+histogram", "hdrhistogram+raw", "histogram", "timeseries", "raw"
    ] = "hdrhistogram"
    measurement_interval: Literal["op", "intended", "both"] = "both"
    binding: BindingName | None = None
    home: str | None = Field(default=None, pattern=r"^/[^\x00:*]*$")
    heap: str = Field(default="256M", pattern=r"^[1-9]\d*[MG]$")
    gc: Literal["serial", "parallel", "g1"] = "g1"
    max_error_share: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="before")
    @classmethod
    def _file_is_read(cls, given: Any) -> Any:
        """Read the file into properties and keys, unless the study sets them itself."""
        if not isinstance(given, Mapping) or not isinstance(given.get("property_file"), str):
            return given
        return _with_file({**given}, Path(given["property_file"]))

    @model_validator(mode="after")
    def _can_be(self) -> YcsbParameters:
        for name, value in self.properties.items():
            if why := refusal(name, _text(value)):
                raise ValueError(why)
        if self.home is None and (unread := only_upstream(self.properties)):
            raise ValueError(
                f"{unread} applies only to YCSB's own binding, not to tare's: leave it out, or set `home`"
            )
        if self.window_s > self.measure_s:
            raise ValueError(f"a window of {self.window_s:g} s is longer than the measure phase")
        if self.operations is not None and self.operations < self.threads:
            raise ValueError(f"{self.operations} operations are fewer than the {self.threads} threads")
        if self.target is not None and self.threads / self.target > _LONGEST_TICK_S:
            raise ValueError(
                f"with {self.threads} threads and a target of {self.target} each thread waits more than "
                f"{_LONGEST_TICK_S:.1f} s between operations, which YCSB does not support: use fewer threads"
            )
        if self.operations is None and self._draws_from_predicted_keys():
            raise ValueError("zipfian requests with inserts need `operations`: YCSB predicts the keys from it")
        if not any(self.share_of(kind) for kind in SHARES):
            raise ValueError("no kind of operation has a share above 0")
        self._must_be_in_records()
        return self

    def _draws_from_predicted_keys(self) -> bool:
        return self.share_of("insert") > 0 and self.mix.get("requestdistribution") == "zipfian"

    def _must_be_in_records(self) -> None:
        start, count = int(self.mix.get("insertstart", 0)), self.mix.get("insertcount")
        if start > 0 and count is None:
            raise ValueError("insertstart needs insertcount: YCSB would load as many records as without it")
        if count is not None and start + int(count) > self.records:
            raise ValueError(f"insertstart and insertcount go beyond the {self.records} records")

    def share_of(self, kind: str) -> float:
        """Share of a kind of operation in the mix, not normalised; YCSB's default if not set."""
        return float(self.mix.get(f"{kind}proportion", SHARES[kind]))

    @property
    def replicas(self) -> int | None:
        """Replication factor of the keyspace; `None` if the study does not set it."""
        factor = self.mix.get(REPLICATION)
        return int(factor) if factor is not None and factor.isdecimal() else None

    @property
    def mix(self) -> Mapping[str, str]:
        """All properties: the core workload's, overridden by the study's."""
        core = MIXES[self.core_workload] if self.core_workload else {}
        return {**core, **{name: _text(value) for name, value in self.properties.items()}}


def _with_file(given: dict[str, Any], path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the property file {path}: {error}") from error
    properties: dict[str, Any] = {}
    for name, (value, line) in read_properties(text).items():
        if why := refusal(name, value, in_file=True):
            raise ValueError(f"{path}:{line}: {why}")
        if name in OWN:
            _set_key(given, OWN[name], value)
        elif name != WORKLOAD:
            properties[name] = value
    own = given.get("properties")
    given["properties"] = {**properties, **(own if isinstance(own, Mapping) else {})}
    del given["property_file"]
    return given


def _set_key(given: dict[str, Any], key: str, value: str) -> None:
    """Set a key of the study by a property, unless the study sets it; 0 is YCSB's "not given"."""
    if key in given or value == "0":
        return
    given[key] = value if key in {"measurementtype", "measurement_interval"} else int(value)


def _text(value: str | float | bool) -> str:  # noqa: FBT001 - a value of any plain kind
    return str(value).lower() if isinstance(value, bool) else str(value)
