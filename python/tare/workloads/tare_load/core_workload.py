"""YCSB's core workload as tare-load runs it, set by YCSB's own property files and properties.

Each property is checked when the study is read; an error names the line of the wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from tare.errors import StudyError
from tare.study.suggest import did_you_mean
from tare.study.values import Strict
from tare.workloads.tare_load.work import LOAD_CONNECTIONS, LOAD_PIPELINE, Invocation
from tare.workloads.ycsb.bindings import BINDINGS
from tare.workloads.ycsb.properties import (
    CORE,
    CORE_WORKLOAD,
    DATA,
    MIXES,
    REPLICATION,
    SHARES,
    WORKLOAD,
    read_properties,
)
from tare.workloads.ycsb.values import Value, flag, one_of, real, whole

FILE = "ycsb.properties"
_MOST = 2**31 - 1
_KINDS: Mapping[str, str] = {
    "read": "read", "update": "update", "insert": "insert", "scan": "scan", "readmodifywrite": "read-modify-write",
}  # fmt: skip
"""YCSB's word in a `…proportion` → tare-load's kind of operation, in tare-load's order."""


def _only(one: str, because: str) -> Value:
    return lambda value: None if value == one else f"{one} ({because})"


def _name(value: str) -> str | None:
    fits = value.isascii() and value.replace("_", "").isalnum() and not value[0].isdigit()
    return None if fits else "a plain name: letters, digits and _"


def _between(least: float, most: float) -> Value:
    def wrong(value: str) -> str | None:
        needed = f"a number from {least:g} to {most:g}"
        return None if real()(value) is None and least <= float(value) <= most else needed

    return wrong


_REFUSED: Mapping[str, str] = {
    "latencytrackederrors": "failures are counted by kind and have no latency",
    "fieldlengthhistogram": "the client has no such file: use another fieldlengthdistribution",
}
_CLIENTS = frozenset({"hdrhistogram", "histogram", "hdrhistogram+histogram"})
KNOWN: Mapping[str, Value] = {
    **{name: value for name, value in CORE.items() if name not in _REFUSED},
    "table": _name,
    "fieldnameprefix": _name,
    "fieldcount": whole(1),
    "fieldlengthdistribution": one_of("constant", "uniform", "zipfian"),
    "requestdistribution": one_of(
        "uniform", "zipfian", "ycsb-compat", "latest", "hotspot", "sequential", "exponential"
    ),
    "exponential.percentile": _between(0.001, 99.999),
    "exponential.frac": _between(1e-9, 1e9),
    "readallfieldsbyname": flag,
    "spin.sleep": _only("false", "the kernel's timers wake tare-load, which never spins"),
    "reportlatencyforeacherror": _only("false", "failures are counted by kind and have no latency"),
    "measurement.trackjvm": _only("false", "there is no JVM"),
    "core_workload_insertion_retry_limit": _only("0", "a failed insert is counted, and not tried again"),
    "measurementtype": one_of(*sorted(_CLIENTS)),
    "measurement.interval": one_of("op", "intended", "both"),
    "jdbc.autocommit": _only("true", "each statement is a transaction of its own"),
    "cassandra.tracing": _only("false", "requests are not traced"),
    "mongodb.writeConcern": one_of("acknowledged", "journaled", "replica_acknowledged", "majority"),
    "mongodb.upsert": _only("false", "an update that finds no record is a failure"),
    "mongodb.readPreference": _only("primary", "there is one server"),
    "batchsize": _only("1", "each record is a request of its own"),
    **{
        name: BINDINGS["cql"].known[name]
        for name in (
            "cassandra.readconsistencylevel", "cassandra.writeconsistencylevel", REPLICATION,
            "cassandra.tableoptions",
        )
    },
}  # fmt: skip
"""Properties that a study may set → check of their values; tare-load never silently ignores a property."""

OF_SPEC: Mapping[str, str] = {"recordcount": "records", "operationcount": "operations"}
"""Properties of a file that are keys of `ycsb` in a study."""
KEYS: Mapping[str, str] = {
    **{name: f"workload.ycsb.{key}" for name, key in OF_SPEC.items()},
    "threadcount": "workload.connections",
    "target": "workload.rate",
    "maxexecutiontime": "workload.measure_s",
    "status.interval": "workload.window_s",
}
_OF_PROTOCOL: Mapping[str, str] = {
    "jdbc.": "mysql postgresql", "cassandra.": "cql", "mongodb.": "mongodb", "batchsize": "mongodb",
}  # fmt: skip
_TO_ALL: Mapping[str, str] = {"cassandra.writeconsistencylevel": "ALL"}
"""Property of a load: loaded data are copied for every run, so every replica must have all of them."""
_SET_BY_TARE = frozenset(
    {
        "db", "dotransactions", "exporter", "exportfile", "hdrhistogram.fileoutput", "hdrhistogram.output.path",
        "hdrhistogram.percentiles", "label", "status", "jdbc.createtable", "cassandra.createtable",
        "cassandra.keyspace",
    }
).union(*(binding.names for binding in BINDINGS.values()))  # fmt: skip


def refusal(name: str, value: str, *, in_file: bool = False) -> str | None:
    """Why a property cannot be set to a value; `None` if it can."""
    known = {**KNOWN, **(dict.fromkeys(OF_SPEC, whole()) if in_file else {})}
    if name in known:
        needed = known[name](value)
        return None if needed is None else f"{name} must be {needed}, and not {value!r}"
    if name == WORKLOAD and in_file and value.endswith(".CoreWorkload"):
        return None
    return f"{name} {_elsewhere(name)}"


def _elsewhere(name: str) -> str:
    if name in _REFUSED:
        return f"cannot be set: {_REFUSED[name]}"
    if name in KEYS:
        return f"is set by the key {KEYS[name]} of the study"
    if name == WORKLOAD:
        return f"is always {CORE_WORKLOAD}"
    if name in _SET_BY_TARE:
        return "is set by tare: leave it out"
    meant = did_you_mean(name, KNOWN, kind="properties")
    return "is not a YCSB property that tare-load supports" + (f" ({meant})" if meant else "")


def _refused_at(where: tuple[str | int, ...], why: str, given: object) -> ValidationError:
    """Make an error that names its place in the study; an error of a whole model would name none."""
    fault = PydanticCustomError("property", "{why}", {"why": why})
    return ValidationError.from_exception_data("ycsb", [InitErrorDetails(type=fault, loc=where, input=given)])


def _each_is_known(properties: Mapping[str, str | int | float | bool]) -> Mapping[str, str | int | float | bool]:
    for name, value in properties.items():
        if why := refusal(name, text(value)):
            raise _refused_at((name,), why, value)
    return properties


class CoreWorkloadSpec(Strict):
    """YCSB's core workload.

    `core_workload`: the mix of one of YCSB's workloads A to F. `property_file`: a file of properties, relative to
    the study, which is read with the study and kept in it. `properties`: single properties, which override both.
    `records`: number of records. `operations`: number of operations that end the measure phase; the run fails if
    `measure_s` does not suffice for them.
    """

    core_workload: Literal["a", "b", "c", "d", "e", "f"] | None = None
    property_file: str | None = None
    properties: Annotated[Mapping[str, str | int | float | bool], AfterValidator(_each_is_known)] = Field(
        default_factory=dict
    )
    records: int = Field(default=1000, ge=1, le=_MOST)
    operations: int | None = Field(default=None, ge=1, le=_MOST)

    @model_validator(mode="before")
    @classmethod
    def _file_is_read(cls, given: Any) -> Any:
        """Read the file into properties and keys, unless the study sets them itself."""
        if not isinstance(given, Mapping) or not isinstance(given.get("property_file"), str):
            return given
        return _with_file({**given}, Path(given["property_file"]))

    @model_validator(mode="after")
    def _can_be(self) -> CoreWorkloadSpec:
        if not self.kinds:
            raise ValueError("no kind of operation has a share above 0")
        start, count = int(self.mix.get("insertstart", 0)), self.mix.get("insertcount")
        if start >= self.records or (count is not None and start + int(count) > self.records):
            raise ValueError(f"insertstart and insertcount go beyond the {self.records} records")
        least, most = int(self.mix.get("minscanlength", 1)), int(self.mix.get("maxscanlength", 1000))
        if least > most:
            raise ValueError(f"minscanlength {least} is above maxscanlength {most}")
        drawn = self.mix.get("requestdistribution")
        if self.operations is None and self.share_of("insert") and drawn in {"zipfian", "ycsb-compat"}:
            raise ValueError(
                f"{drawn} requests beside inserts need `operations`: it determines how many records there will be"
            )
        return self

    @property
    def mix(self) -> Mapping[str, str]:
        """All properties: the core workload's, overridden by the study's."""
        core = MIXES[self.core_workload] if self.core_workload else {}
        return {**core, **{name: text(value) for name, value in self.properties.items()}}

    def share_of(self, word: str) -> float:
        """Share of a kind of operation in the mix, not normalised."""
        return float(self.mix.get(f"{word}proportion", SHARES[word]))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of operations with a share above 0."""
        return tuple(kind for word, kind in _KINDS.items() if self.share_of(word) > 0)

    @property
    def unit(self) -> str:
        """YCSB's unit."""
        return "operations"

    @property
    def ends_after(self) -> int | None:
        """Number of operations that end the measure phase (YCSB's `operationcount`); `None`: time ends it."""
        return self.operations

    @property
    def replicas(self) -> int | None:
        """Replication factor of the keyspace; `None` if the study does not set it."""
        factor = self.mix.get(REPLICATION)
        return None if factor is None else int(factor)

    def has_steps(self, protocol: str) -> bool:
        """Whether an operation takes several requests: read-modify-writes, and in Redis inserts and scans."""
        apart = {"read-modify-write", *(("insert", "scan") if protocol == "redis" else ())}
        return not apart.isdisjoint(self.kinds)

    def dataset(self) -> Mapping[str, str | int]:
        """Number of records, their shape and the options of their table."""
        shape = {name: self.mix[name] for name in DATA if name in self.mix}
        tables = {name: self.mix[name] for name in (REPLICATION, "cassandra.tableoptions") if name in self.mix}
        return {"record_count": self.records, **shape, **tables}

    def load_invocation(self, protocol: str, run_dir: str) -> Invocation:
        """Describe the load: create the table and insert every record."""
        depth = 1 if protocol == "redis" else LOAD_PIPELINE
        made = {"mysql": "jdbc", "postgresql": "jdbc", "cql": "cassandra"}.get(protocol)
        more = {
            **({} if made is None else {f"{made}.createtable": "true"}),
            **(_TO_ALL if (self.replicas or 1) > 1 else {}),
        }
        options = (f"-P{run_dir}/{FILE}", f"--connections={LOAD_CONNECTIONS}", f"--depth={depth}")
        inserted = int(self.mix.get("insertcount", self.records - int(self.mix.get("insertstart", 0))))
        return Invocation("load", options, {FILE: self._file(protocol, more)}, rows=inserted, right=inserted)

    def measure_invocation(self, protocol: str, run_dir: str, measure_s: float) -> Invocation:
        """Describe the measure phase: operations of the mix."""
        more: dict[str, str] = {}
        if self.operations is not None:
            more = {"operationcount": str(self.operations), "maxexecutiontime": str(math.ceil(measure_s))}
        return Invocation("run", (f"-P{run_dir}/{FILE}",), {FILE: self._file(protocol, more)})

    def _file(self, protocol: str, more: Mapping[str, str]) -> str:
        for name in self.mix:
            spoken = next((words for head, words in _OF_PROTOCOL.items() if name.startswith(head)), protocol)
            if protocol not in spoken.split():
                raise StudyError(f"the property {name} is for another database", hint="leave it out")
        properties = {WORKLOAD: CORE_WORKLOAD, "recordcount": str(self.records), **self.mix, **more}
        return "".join(f"{name}={value}\n" for name, value in properties.items())


def _with_file(given: dict[str, Any], path: Path) -> dict[str, Any]:
    where = ("property_file",)
    try:
        written = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused_at(where, f"cannot read the property file {path}: {error}", str(path)) from error
    properties = {}
    for name, (value, line) in read_properties(written).items():
        if why := refusal(name, value, in_file=True):
            raise _refused_at(where, f"{path}:{line}: {why}", str(path))
        if name in OF_SPEC:
            if value != "0":  # with YCSB: not given
                given.setdefault(OF_SPEC[name], int(value))
        elif name != WORKLOAD:
            properties[name] = value
    own = given.get("properties")
    given["properties"] = {**properties, **(own if isinstance(own, Mapping) else {})}
    del given["property_file"]
    return given


def text(value: str | float | bool) -> str:  # noqa: FBT001 - a value of any plain kind
    """Render a value for a property file."""
    return str(value).lower() if isinstance(value, bool) else str(value)
